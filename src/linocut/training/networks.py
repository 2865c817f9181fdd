"""One network seen twice: by the update in train mode, by the attack in eval mode.

Two modules over the same memory, so that neither mode nor requires_grad is ever switched: a compiled module
would be compiled anew at each switch, and would compute weight gradients that the attack throws away.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from linocut.models import Architecture, build
from linocut.training.config import TrainingConfig
from linocut.training.streams import stream


def fresh_network(architecture: Architecture, seed: int) -> nn.Module:
    """A run's network before its first step, on the CPU."""
    name, classes, channels = architecture.name, architecture.num_classes, architecture.in_channels
    return build(name, classes, channels, generator=stream(seed, "weights"))


def twin_of(network: nn.Module, architecture: Architecture) -> nn.Module:
    """The same network in eval mode: it shares every parameter and buffer and asks no gradient for them."""
    twin = architecture.outline()
    twin.load_state_dict({name: value.detach() for name, value in network.state_dict().items()}, assign=True)
    return twin.requires_grad_(False).eval()


class Front:
    """images -> float32 logits: the transform, the memory format, the precision, the network.

    `usual` is the batch size a compiled network is made for; others run uncompiled.
    """

    def __init__(
        self,
        config: TrainingConfig,
        transform: nn.Module | None,
        network: Callable[[torch.Tensor], torch.Tensor],
        device: torch.device,
        usual: int,
    ):
        self.transform = transform
        self.network = network
        self.compiled: Any = torch.compile(network, dynamic=False) if config.compile else network
        self.device = device
        self.usual = usual
        self.layout = torch.channels_last if config.channels_last else torch.contiguous_format
        self.lower = config.precision == "bfloat16"

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        if self.transform is not None:
            images = self.transform(images)
        network = self.compiled if len(images) == self.usual else self.network
        # No cache of cast weights: it would outlive a captured graph.
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.lower, cache_enabled=False):
            logits = network(images.contiguous(memory_format=self.layout))
        return logits.float()
