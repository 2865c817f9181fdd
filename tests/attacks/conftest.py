"""Small models whose right answers are known."""

import pytest
import torch
from torch import nn

from linocut.attacks import PGD, Dice, ThreatModel


class Watched:
    """A model that remembers every image it was asked about."""

    def __init__(self, model):
        self.model, self.seen = model, []

    def __call__(self, images):
        self.seen.append(images.detach().clone())
        return self.model(images)

    @property
    def images(self):
        return torch.cat(self.seen)


class Linear:
    """Two classes, logits (w.x + b, 0): every attack's optimum has a closed form."""

    def __init__(self, weight, bias=0.0):
        self.weight, self.bias = weight, bias

    def __call__(self, images):
        score = (images.double() * self.weight.double()).sum(dim=(1, 2, 3)) + self.bias
        return torch.stack([score, torch.zeros_like(score)], dim=1).float()


class Quantized(nn.Module):
    """A toy defence with every hook: pixels go to the nearest of `levels` values, backward is identity."""

    def __init__(self, network, levels=5, surrogate="identity", palettes=None):
        super().__init__()
        self.network, self.levels, self.surrogate, self.palettes = network, levels, surrogate, palettes
        self.calls = []

    @property
    def transform(self):
        return self

    def explain(self, images):
        colors = torch.linspace(0, 1, self.levels)[:, None].expand(-1, images.shape[1])
        record = type("Record", (), {"palette": colors})
        return [record for _ in images]

    def forward(self, images):
        if self.palettes is not None:
            assert len(self.palettes) == len(images), "frozen palettes must be aligned with the batch"
        steps = self.levels - 1
        values = (images.detach() * steps).round() / steps
        if self.surrogate != "none":
            values = _Through.apply(images, values)
        return self.network(values)

    def with_surrogate(self, name):
        self.calls.append(name)
        return Quantized(self.network, self.levels, name)

    def frozen(self, images):
        self.calls.append(len(images))
        return Quantized(self.network, self.levels, "identity", palettes=images)

    def undefended(self):
        self.calls.append("undefended")
        return self.network


class _Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx, images, values):
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


@pytest.fixture(scope="session")
def network():
    """A small random CNN in double precision, so that batch mates do not move its last float32 bits."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(96, 6))
    body = body.double().eval().requires_grad_(False)
    body[-1].weight.mul_(6)
    return lambda images: body(images.double()).float()


@pytest.fixture(scope="session")
def batch(network):
    """Twenty-four images, 9 by 12, with the labels the network gives them, and their dice."""
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(24, 3, 9, 12, generator=generator)
    return images, network(images).argmax(dim=1), Dice.of(3, len(images))


@pytest.fixture
def watched():
    return Watched


@pytest.fixture
def linear():
    return Linear


@pytest.fixture
def quantized(network):
    return lambda **settings: Quantized(network, **settings)


@pytest.fixture(params=["linf", "l2"])
def threat(request):
    return ThreatModel("linf", 0.02) if request.param == "linf" else ThreatModel("l2", 0.2)


@pytest.fixture(scope="session")
def strong_pgd():
    return PGD(num_steps=60, any_iterate=True)
