"""Small drawn digits, and a network trained to be proven on them."""

import pytest
import torch

from linocut.theory.network import build, folded
from linocut.theory.training import IntervalTraining, train


def draw(n, seed):
    """(images uint8 (n, 1, 8, 8) that reach 0 and 255, labels): a bar in one of four places, a fifth of all grey."""
    dice = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 4, (n,), generator=dice)
    images = torch.randint(0, 12, (n, 1, 8, 8), generator=dice)
    for image, label in zip(images[:, 0], labels.tolist(), strict=True):
        at = 2 if label % 2 else 5
        if label < 2:
            image[1:7, at] = 255
        else:
            image[at, 1:7] = 255
    grey = torch.rand(images.shape, generator=dice) < 0.2
    images = torch.where(grey, torch.randint(0, 256, images.shape, generator=dice), images)
    images[:, 0, 0, 0], images[:, 0, 7, 7] = 0, 255
    return images.to(torch.uint8), labels


@pytest.fixture(scope="session")
def drawn_digits():
    return draw


@pytest.fixture(scope="session", params=["adaptive", (0, 255)], ids=["adaptive", "fixed"])
def proven_network(request):
    """(codebook, a folded network trained with intervals for a few seconds)."""
    plan = IntervalTraining(eps=60, codebook=request.param, epochs=5, batch=64, lr=5e-3)
    network = build(((8, 2),), 24, torch.Generator().manual_seed(0), side=8, classes=4)
    return request.param, folded(train(network, *draw(1200, 0), plan))
