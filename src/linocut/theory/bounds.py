"""Interval bounds through a network, and from them a lower bound on how far the true class leads."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def propagate(network: nn.Sequential, natural: Tensor, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Natural activations, centre and radius in front of the last layer, which must be linear.

    Batch norms take their statistics from the natural images while training, and are the same affine map for both.
    """
    center, radius = (lower + upper) / 2, (upper - lower) / 2
    for layer in list(network)[:-1]:
        if isinstance(layer, nn.Conv2d):
            natural, center = layer(torch.cat([natural, center])).split([len(natural), len(center)])
            radius = F.conv2d(radius, layer.weight.abs(), None, layer.stride, layer.padding)
        elif isinstance(layer, nn.Linear):
            natural, center, radius = layer(natural), layer(center), F.linear(radius, layer.weight.abs())
        elif isinstance(layer, nn.BatchNorm2d | nn.BatchNorm1d):
            natural, center, radius = _normalise(layer, natural, center, radius)
        elif isinstance(layer, nn.ReLU):
            low, high = F.relu(center - radius), F.relu(center + radius)
            natural, center, radius = F.relu(natural), (low + high) / 2, (high - low) / 2
        elif isinstance(layer, nn.Flatten):
            natural, center, radius = natural.flatten(1), center.flatten(1), radius.flatten(1)
        else:
            raise AssertionError(f"no bounds for {type(layer).__name__}")
    return natural, center, radius


def _normalise(
    layer: nn.BatchNorm2d | nn.BatchNorm1d, natural: Tensor, center: Tensor, radius: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    if layer.training:
        axes = [0, 2, 3] if natural.dim() == 4 else [0]
        variance, mean = torch.var_mean(natural, axes, correction=0)
    else:
        assert layer.running_var is not None
        assert layer.running_mean is not None
        variance, mean = layer.running_var, layer.running_mean
    scale = layer.weight * torch.rsqrt(variance + layer.eps)
    shift = layer.bias - mean * scale
    scale, shift = (v.view(1, -1, *[1] * (natural.dim() - 2)) for v in (scale, shift))
    return layer(natural), center * scale + shift, radius * scale.abs()


def margins(last: nn.Linear, center: Tensor, radius: Tensor, labels: Tensor) -> Tensor:
    """(N, classes): a lower bound on the true class's logit less each class's, 0 at the true class itself.

    The last layer is merged with the difference, so nothing is lost by bounding both logits apart.
    """
    difference = last.weight.index_select(0, labels)[:, None] - last.weight[None]
    offset = last.bias.index_select(0, labels)[:, None] - last.bias
    at_center = (difference @ center[:, :, None]).squeeze(2)
    return at_center - (difference.abs() @ radius[:, :, None]).squeeze(2) + offset


def margin_bounds(network: nn.Sequential, lower: Tensor, upper: Tensor, labels: Tensor) -> Tensor:
    """(N,): a lower bound on the true class's lead over the runner-up, for all images between lower and upper."""
    nothing = lower[:0]
    _, center, radius = propagate(network, nothing, lower, upper)
    last = network[-1]
    assert isinstance(last, nn.Linear)
    lead = margins(last, center, radius, labels)
    return lead.scatter(1, labels[:, None], torch.inf).amin(1)
