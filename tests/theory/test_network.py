import torch
from torch import nn

from linocut.theory.network import LARGE, SMALL, build, folded


def test_folding_keeps_the_logits_up_to_half_precision():
    generator = torch.Generator().manual_seed(0)
    network = build(*SMALL, generator=generator)
    images = (torch.rand(64, 1, 28, 28, generator=generator) < 0.3).float()
    network(images)  # moves the running statistics away from 0 and 1
    network.eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    flat = folded(network)
    expected = network(images)
    assert torch.allclose(flat(images), expected, atol=5e-3 * expected.abs().max().item())
    assert not any(isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d) for layer in flat)
    assert all((p == p.half().float()).all() for p in flat.parameters())
    assert all((before[name] == value).all() for name, value in network.state_dict().items())


def test_four_large_networks_in_half_precision_stay_under_16_megabytes():
    network = folded(build(*LARGE, generator=torch.Generator().manual_seed(0)))
    assert 4 * 2 * sum(p.numel() for p in network.parameters()) < 16e6


def test_intervals_keep_their_width_at_the_start():
    """Undecided everywhere, a fresh layer's mean radius is about as large as its input's."""
    network = build(*LARGE, generator=torch.Generator().manual_seed(0))
    radius = torch.full((1, 64, 8, 8), 0.5)
    convolution = network[3]
    out = nn.functional.conv2d(radius, convolution.weight.abs(), None, 1, 0)
    assert 0.9 < out.mean() / (2 * 0.5) < 1.1
