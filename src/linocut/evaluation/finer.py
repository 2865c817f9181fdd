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


def made_finer(network: nn.Module, classes: int, *, compiled: bool) -> nn.Module:
    """A copy on the same weights that rounds less in sixteen bits; the network itself where it cannot be copied."""
    shared: dict[int, Any] = {id(each): each for each in (*network.parameters(), *network.buffers())}
    try:
        copied = copy.deepcopy(network, shared).eval()  # nobody else will say so to the copy
    except Exception as reason:  # a stranger's module may hold anything; a copy is not worth a failure
        LOG.info("the network cannot be copied and is searched as it is in sixteen bits: %s", reason)
        return network
    for layer in copied.modules():
        if type(layer) is nn.Linear and layer.out_features == classes:
            layer.__class__ = FineHead
        elif type(layer) is nn.Conv2d and compiled:
            layer.__class__ = FineSums
    return copied
