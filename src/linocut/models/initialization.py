"""Fresh weights from an explicit generator: torch's layers would draw theirs from the global one."""

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


@torch.no_grad()
def initialize(network: nn.Module, generator: torch.Generator) -> None:
    """Give every layer He's weights (convolutions by fan-out, linear layers by fan-in) and zero biases."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu", generator=generator)
        elif isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="relu", generator=generator)
        elif isinstance(layer, _BatchNorm):
            layer.reset_running_stats()
            nn.init.ones_(layer.weight)
        elif next(layer.parameters(recurse=False), None) is not None:
            raise AssertionError(f"no rule to initialise {type(layer).__name__}")
        bias = getattr(layer, "bias", None)
        if isinstance(bias, nn.Parameter):
            nn.init.zeros_(bias)
