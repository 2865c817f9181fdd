"""Defended: order of its parts, and hooks that share the network."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from linocut.errors import InputError
from linocut.models import Defended, build
from linocut.transform.modules import EssentialFeatures


class Halve(nn.Module):
    """A transform with the hooks of the real ones, whose answers are easy to foresee."""

    def __init__(self, factor=0.5):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor

    def with_surrogate(self, name):
        return Halve({"bpda": 0.5, "identity": 0.25}[name])

    def frozen(self, images):
        return Halve(images.mean().item())


@pytest.fixture
def images():
    return torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def test_transform_then_normalise_then_model(images):
    defended = Defended(Halve(), nn.Identity(), mean=[0.25], std=[0.5])
    torch.testing.assert_close(defended(images), (images * 0.5 - 0.25) / 0.5)
    torch.testing.assert_close(Defended(None, nn.Identity())(images), images)


def test_hooks_change_the_front_and_share_the_weights(images):
    defended = Defended(Halve(), build("small-net", 10, 1), mean=[0.1], std=[0.3]).eval()
    for twin, factor in (
        (defended.with_surrogate("identity"), 0.25),
        (defended.frozen(images), images.mean().item()),
        (defended.undefended(), 1.0),
    ):
        assert twin.model is defended.model
        assert not twin.training
        torch.testing.assert_close(twin(images), defended.model((images * factor - 0.1) / 0.3))
        with torch.no_grad():
            defended.model.fc.bias.add_(1.0)
        torch.testing.assert_close(twin(images), defended.model((images * factor - 0.1) / 0.3))


def test_hooks_of_the_real_transform():
    colours = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(3))
    transform = EssentialFeatures(backend="torch")
    defended = Defended(transform, build("small-net")).eval()
    torch.testing.assert_close(defended.undefended()(colours), defended.model(colours))
    torch.testing.assert_close(defended.frozen(colours)(colours), defended(colours))
    slopes = []
    for front in (defended, defended.with_surrogate("none")):
        x = colours.clone().requires_grad_()
        slopes.append(torch.autograd.grad(front(x).sum(), x)[0].abs().sum().item())
    assert slopes[0] > 0
    assert slopes[1] == 0


def test_mode_is_shared_with_twins():
    defended = Defended(Halve(), nn.Sequential(nn.BatchNorm2d(1)))
    twin = defended.undefended()
    defended.eval()
    assert not twin.model.training


def test_hooks_are_absent_where_they_mean_nothing():
    bare, plain = Defended(None, nn.Identity()), Defended(nn.ReLU(), nn.Identity())
    assert not any(hasattr(bare, hook) for hook in ("with_surrogate", "frozen", "undefended"))
    assert hasattr(plain, "undefended")
    assert not hasattr(plain, "frozen")


def test_mean_without_std_and_zero_std_are_refused():
    for mean, std in (([0.5], None), (None, [0.5]), ([0.5], [0.0]), ([0.5, 0.5], [1.0])):
        with pytest.raises(InputError):
            Defended(None, nn.Identity(), mean=mean, std=std)


def test_parameters_are_those_of_the_model():
    model = build("small-net", 10, 1)
    assert {id(p) for p in Defended(Halve(), model).parameters()} == {id(p) for p in model.parameters()}


def test_images_of_other_channels_are_refused_and_not_broadcast():
    defended = Defended(None, nn.Identity(), mean=[0.5] * 3, std=[0.5] * 3)
    with pytest.raises(InputError, match="give one value a channel"):
        defended(torch.zeros(2, 1, 4, 4))


def test_mean_and_std_may_be_tensors_or_whole_numbers():
    for mean, std in ((torch.zeros(3), torch.ones(3)), ([0, 0, 0], [1, 1, 1])):
        assert Defended(None, nn.Identity(), mean, std).mean.dtype == torch.float32


@pytest.mark.parametrize(
    ("transform", "model", "told"),
    [
        (None, "folder", r"model is the path 'folder'.*linocut\.load\(folder\)"),
        (None, Path("folder"), r"linocut\.load\(folder\)"),
        (None, nn.Identity, r"the class Identity.*Identity\(\.\.\.\)"),
        (None, None, "model is a NoneType"),
        (EssentialFeatures, nn.Identity(), "transform is the class EssentialFeatures"),
        ("mnist", nn.Identity(), "transform is the path"),
        (8 / 255, nn.Identity(), "transform is a float"),
    ],
)
def test_parts_that_are_no_modules_are_refused_at_once(transform, model, told):
    with pytest.raises(InputError, match=told):
        Defended(transform, model)


@pytest.mark.parametrize(
    ("mean", "std"),
    [
        ([math.nan], [1.0]),
        ([math.inf], [1.0]),
        ([0.5], [math.inf]),
        ([0.5], [0.0]),
        ([0.5], [1e-60]),
        ([1e60], [1.0]),
        ([10**400], [1.0]),
        (["x"], [1.0]),
        ([0.5], [1.0, 1.0]),
        (0.5, 0.5),
        ([], []),
    ],
)
def test_mean_and_std_are_finite_numbers_for_each_channel(mean, std):
    with pytest.raises(InputError, match="one finite number a channel"):
        Defended(None, nn.Identity(), mean, std)


def test_mean_and_std_may_be_tensors_and_arrays():
    defended = Defended(None, nn.Identity(), torch.tensor([0.25, 0.5]), np.array([0.5, 1.0]))
    assert defended.mean.tolist() == [[[0.25]], [[0.5]]]
    assert defended.std.tolist() == [[[0.5]], [[1.0]]]
