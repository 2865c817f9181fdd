"""Networks that round less in sixteen bits, so that a search which lives on small differences can believe them."""

import copy
import logging
from typing import Any

import torch
from torch import nn

LOG = logging.getLogger(__name__)


class FineHead(nn.Linear):
    """A last layer in its weights' own format: logits in sixteen bits are rounder than all that went before them."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        with torch.autocast(features.device.type, enabled=False):
            return super().forward(features.to(self.weight.dtype))


class FineSums(nn.Conv2d):
    """A convolution in float16 whose sums go on in float32, as those of a GPU in TF32 do.

    A residual network adds up many of them. Compiled, the longer format costs next to nothing.
    """

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        sums = super().forward(images)
        return sums.float() if sums.dtype == torch.float16 else sums


@torch.no_grad()
def made_finer(network: nn.Module, images: torch.Tensor, *, compiled: bool) -> nn.Module:
    """A copy on the same weights that rounds less in sixteen bits; the network itself where there is no true copy.

    images: some that the network takes, at which the copy must give the same logits.
    """
    classes = network(images[:1]).shape[1]
    shared: dict[int, Any] = {id(each): each for each in (*network.parameters(), *network.buffers())}
    try:
        copied = copy.deepcopy(network, shared)
        for layer in copied.modules():
            if type(layer) is nn.Linear and layer.out_features == classes:
                layer.__class__ = FineHead
            elif type(layer) is nn.Conv2d and compiled:
                layer.__class__ = FineSums
        true = network(images)
        network(images[:1])  # so that a copy which leans on what its original remembers is found out
        _require_same(copied, images, true)
    except Exception as reason:  # a stranger's module may hold anything; a finer copy is not worth a failure
        LOG.info("the network has no finer copy and is searched as it is in sixteen bits: %s", reason)
        return network
    return copied


def _require_same(copied: nn.Module, images: torch.Tensor, true: torch.Tensor) -> None:
    """Raise unless the copy gives these logits, and gives some in the formats it is meant for."""
    torch.testing.assert_close(copied(images), true, rtol=1e-3, atol=1e-3 * float(true.abs().max()))
    for dtype in (torch.bfloat16, torch.float16) if images.is_cuda else (torch.bfloat16,):
        with torch.autocast(images.device.type, dtype=dtype):
            copied(images)
