"""On a GPU: about the same results as on a CPU, and no waiting for the device between steps."""

import copy

import pytest
import torch
from torch import nn

from linocut.attacks import APGD, PGD, ChenLoop, Dice, NoiseAveragedPGD, RandomNoise, Square

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture(scope="module")
def task():
    """A small network that follows its images to their device, and images it labels itself."""
    torch.manual_seed(0)
    near = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 70, 6)).double().eval()
    far = copy.deepcopy(near).to("cuda")
    images = torch.rand(24, 3, 9, 12)
    return lambda x: (far if x.is_cuda else near)(x.double()).float(), images, near(images.double()).argmax(1)


@pytest.mark.parametrize(
    "attack",
    [
        PGD(num_steps=10),
        PGD(num_steps=10, any_iterate=True),
        APGD(num_steps=20),
        Square(num_queries=60),
        NoiseAveragedPGD(num_steps=5, copies=2),
        RandomNoise(draws=10),
        ChenLoop(num_steps=10),
    ],
    ids=lambda attack: attack.name,
)
def test_both_devices_break_the_same_examples(task, threat, attack):
    model, images, labels = task
    near = attack.run(model, images, labels, threat, Dice.of(0, 24))
    far = attack.run(model, images.cuda(), labels.cuda(), threat, Dice.of(0, 24, "cuda"))
    assert far.images.is_cuda
    assert (far.broken.cpu() != near.broken).sum() <= 1
    assert threat.contains(far.images, images.cuda()).all()
    # Examples that a GPU has not yet let go are locked: they count no more queries than on a CPU.
    same = far.broken.cpu() == near.broken
    assert (far.queries.cpu()[same] - near.queries[same]).abs().float().mean() < 1


def test_pgd_as_published_never_waits_for_the_device_in_its_steps(task, threat, monkeypatch):
    model, images, labels = task
    given = (images.cuda(), labels.cuda(), threat, Dice.of(0, 24, "cuda"))
    attack = PGD(num_steps=5)
    attack.run(model, *given)  # kernels are chosen and tables copied once
    monkeypatch.setattr("linocut.attacks.pgd.require_batch", lambda *_: None)  # it waits once, for the images' range
    torch.cuda.set_sync_debug_mode("error")
    try:
        attack.run(model, *given)
    finally:
        torch.cuda.set_sync_debug_mode("default")
