import numpy as np
import pytest
import torch
from defences import sixteen_levels
from evaluation_cases import Linear, direction, pictures

from linocut.attacks.hooks import NotApplicable
from linocut.errors import InputError
from linocut.evaluation.stranger import Preprocessed, has_gradient


def gradient_of(model, images):
    leaf = images.clone().requires_grad_()
    return torch.autograd.grad(model(leaf)[:, 0].sum(), leaf)[0]


def test_the_forward_is_the_preprocessing_and_the_backward_the_identity():
    sound, images = Linear(direction()), pictures().unit(slice(0, 5))
    behind = Preprocessed(sixteen_levels, sound, probe=images)
    assert torch.equal(behind(images), sound(sixteen_levels(images)))
    assert torch.equal(gradient_of(behind, images), gradient_of(sound, images))
    assert not gradient_of(behind.with_surrogate("own"), images).any()
    assert torch.equal(behind.undefended()(images), sound(images))
    with pytest.raises(NotApplicable, match="soft"):
        behind.with_surrogate("soft")


def test_an_own_gradient_is_kept():
    images = pictures().unit(slice(0, 5))
    doubled = Preprocessed(lambda x: x * 2, Linear(direction()), probe=images)
    assert doubled.surrogate == "own"
    assert torch.allclose(gradient_of(doubled, images), 2 * gradient_of(Linear(direction()), images))


@pytest.mark.parametrize(
    ("transform", "answer"),
    [
        (lambda x: x, True),
        (torch.sqrt, True),
        (torch.round, False),
        (torch.detach, False),
        (lambda x: torch.from_numpy(x.numpy()), False),
        (lambda x: (x * 0).sqrt() + x, False),
    ],
)
def test_has_gradient(transform, answer):
    assert has_gradient(transform, pictures().unit(slice(0, 3))) is answer


@pytest.mark.parametrize(
    ("transform", "told"),
    [
        (lambda x: x.round_(), "changes the images it is given"),
        (lambda x: torch.from_numpy(x.numpy() / np.float64(1)), "a tensor of torch.float64"),
        (lambda x: x.numpy(), "a ndarray"),
    ],
)
def test_a_preprocessing_that_would_fail_later_is_refused(transform, told):
    images = pictures().unit(slice(0, 3))
    with pytest.raises(InputError, match=told):
        Preprocessed(transform, Linear(direction()), probe=images)
    assert torch.equal(images, pictures().unit(slice(0, 3)))


def test_another_fault_is_not_swallowed():
    def faulty(images):
        raise RuntimeError("out of paint")

    with pytest.raises(RuntimeError, match="out of paint"):
        has_gradient(faulty, pictures().unit(slice(0, 3)))


def test_the_identity_does_not_hand_its_input_on():
    images = pictures().unit(slice(0, 2))
    same = Preprocessed(lambda x: x, Linear(direction()), surrogate="identity")
    assert torch.equal(same(images), Linear(direction())(images))
