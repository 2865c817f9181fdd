"""The networks by name. One is first built without memory, so that files are checked before any is spent."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from linocut.errors import InputError
from linocut.models.convnets import MadryNet, SmallNet
from linocut.models.initialization import initialize
from linocut.models.resnet import PreActResNet18, ResNet34
from linocut.models.wide_resnet import WideResNet

NETWORKS: dict[str, Callable[[int, int], nn.Module]] = {
    "small-net": SmallNet,
    "madry-net": MadryNet,
    "wrn-16-4": partial(WideResNet, 16, 4),
    "wrn-28-4": partial(WideResNet, 28, 4),
    "wrn-34-10": partial(WideResNet, 34, 10),
    "preact-resnet-18": PreActResNet18,
    "resnet-34-small": partial(ResNet34, small=True),
    "resnet-34": partial(ResNet34, small=False),
}
MOST_CLASSES = 100_000
MOST_CHANNELS = 64


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Which network: one of NETWORKS, with its numbers of classes and input channels."""

    name: str
    num_classes: int = 10
    in_channels: int = 3

    def __post_init__(self) -> None:
        if self.name not in NETWORKS:
            raise InputError(f"no architecture is called {self.name!r}; there are: {', '.join(NETWORKS)}")
        for field, value, most in (
            ("num_classes", self.num_classes, MOST_CLASSES),
            ("in_channels", self.in_channels, MOST_CHANNELS),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise InputError(f"{field} must be a whole number from 1 to {most}, got {value!r}")

    def outline(self) -> nn.Module:
        """The network on torch's meta device: shapes and names, no memory, no random numbers."""
        with torch.device("meta"):
            return NETWORKS[self.name](self.num_classes, self.in_channels)


def build(
    name: str, num_classes: int = 10, in_channels: int = 3, *, generator: torch.Generator | None = None
) -> nn.Module:
    """A freshly initialised network on the CPU; without a generator, the one of seed 0.

    >>> sum(p.numel() for p in build("madry-net", 10, 1).parameters())
    3274634
    """
    network = Architecture(name=name, num_classes=num_classes, in_channels=in_channels).outline()
    network.to_empty(device="cpu")
    initialize(network, generator or torch.Generator().manual_seed(0))
    return network
