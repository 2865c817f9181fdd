"""A run small enough to be repeated many times, and networks whose answers can be worked out by hand."""

import hashlib
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from linocut.models import architecture
from linocut.training import TrainingConfig, run


class TwoLayers(nn.Module):
    """Linear, ReLU, linear on 6x6 images: no batch statistics, gradients that can be replayed."""

    def __init__(self, num_classes, in_channels):
        super().__init__()
        self.hidden = nn.Linear(in_channels * 36, 12)
        self.fc = nn.Linear(12, num_classes)

    def forward(self, x):
        return self.fc(torch.relu(self.hidden(x.flatten(1))))


class WithStatistics(TwoLayers):
    """The same behind a BatchNorm."""

    def __init__(self, num_classes, in_channels):
        super().__init__(num_classes, in_channels)
        self.norm = nn.BatchNorm2d(in_channels)

    def forward(self, x):
        return super().forward(self.norm(x))


@pytest.fixture(autouse=True)
def tiny_networks(monkeypatch):
    monkeypatch.setitem(architecture.NETWORKS, "two-layers", TwoLayers)
    monkeypatch.setitem(architecture.NETWORKS, "with-statistics", WithStatistics)


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    """Drawing takes longer than these runs; the test of the figure puts it back."""
    monkeypatch.setattr(run, "draw_curves", lambda out: None)


def make_images(count=40, side=6, channels=1, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 3
    pixels = torch.randint(0, 60, (count, channels, side, side), generator=generator)
    pixels = (pixels + 95 * labels.view(-1, 1, 1, 1)).to(torch.uint8)  # the brighter, the higher the class
    digest = hashlib.sha256(pixels.numpy().tobytes() + labels.numpy().tobytes()).hexdigest()
    return SimpleNamespace(pixels=pixels, labels=labels, classes=("a", "b", "c"), sha256=digest, name="tiny")


def make_config(**changes):
    settings = {
        "recipe": "tiny",
        "data_set": "tiny",
        "architecture": "two-layers",
        "eps": 0.1,
        "step_size": 0.04,
        "num_steps": 2,
        "pad": 1,
        "flip": True,
        "reset_every": 2,
        "epochs": 4,
        "milestones": (3,),
        "batch_size": 8,
        "learning_rate": 0.05,
        "weight_decay": 1e-3,
        "canvas_store": "float32",
    }
    return TrainingConfig(**{**settings, **changes})


@pytest.fixture
def images():
    return make_images()


@pytest.fixture
def config():
    return make_config()
