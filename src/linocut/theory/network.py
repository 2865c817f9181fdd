"""The networks that are certified: convolutions, batch norms and ReLUs on black-and-white images."""

import math
from collections.abc import Sequence

import torch
from torch import nn

# (output channels, stride) of each 3x3 convolution, then the width of the hidden layer
SMALL = (((16, 2), (32, 2)), 100)
LARGE = (((64, 1), (64, 2), (128, 1), (128, 2), (128, 1)), 240)


def build(
    convolutions: Sequence[tuple[int, int]], hidden: int, generator: torch.Generator, side: int = 28, classes: int = 10
) -> nn.Sequential:
    """A network for (N, 1, side, side) images, weights drawn so that intervals keep their width from layer to layer.

    A weight of standard deviation sqrt(2 pi) / fan_in has a mean size of 2 / fan_in: after a ReLU, which passes
    about half, the sum over the fan-in is as wide as its inputs.
    """
    layers: list[nn.Module] = []
    channels = 1
    for width, stride in convolutions:
        layers += [nn.Conv2d(channels, width, 3, stride, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        channels, side = width, -(-side // stride)
    layers += [nn.Flatten(), nn.Linear(channels * side * side, hidden), nn.BatchNorm1d(hidden), nn.ReLU()]
    layers.append(nn.Linear(hidden, classes))
    with torch.no_grad():
        for layer in layers:
            if isinstance(layer, nn.Conv2d | nn.Linear):
                fan_in = layer.weight[0].numel()
                layer.weight.normal_(0, math.sqrt(2 * math.pi) / fan_in, generator=generator)
                assert layer.bias is not None
                layer.bias.zero_()
    return nn.Sequential(*layers)


def folded(network: nn.Sequential) -> nn.Sequential:
    """The same network without batch norms, its weights rounded to float16 values: this one is judged and kept."""
    layers: list[nn.Module] = []
    for layer in network:
        if isinstance(layer, nn.BatchNorm2d | nn.BatchNorm1d):
            linear = layers[-1]
            assert isinstance(linear, nn.Conv2d | nn.Linear)
            assert linear.bias is not None
            assert layer.running_var is not None
            assert layer.running_mean is not None
            scale = layer.weight.detach() / torch.sqrt(layer.running_var + layer.eps)
            shape = [-1] + [1] * (linear.weight.dim() - 1)
            linear.weight.data = linear.weight.data * scale.view(shape)
            linear.bias.data = (linear.bias.data - layer.running_mean) * scale + layer.bias.detach()
        else:
            layers.append(_copy(layer))
    result = nn.Sequential(*layers).requires_grad_(False).eval()
    for parameter in result.parameters():
        parameter.data = parameter.data.half().float()
    return result


def _copy(layer: nn.Module) -> nn.Module:
    """A fresh layer with the same weights; layers without weights are shared."""
    if isinstance(layer, nn.Conv2d):
        fresh: nn.Module = nn.Conv2d(layer.in_channels, layer.out_channels, 3, layer.stride[0], padding=1)
    elif isinstance(layer, nn.Linear):
        fresh = nn.Linear(layer.in_features, layer.out_features)
    else:
        return layer
    fresh.load_state_dict({name: value.detach().clone() for name, value in layer.state_dict().items()})
    return fresh.to(layer.weight.device)
