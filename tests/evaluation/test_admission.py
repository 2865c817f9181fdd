"""A model that cannot be judged is refused before anything runs, with the reason."""

import pytest
import torch
from evaluation_cases import Linear, direction, pictures
from torch import nn

from linocut.errors import InputError
from linocut.evaluation.admission import require_logits, require_own_logits

IMAGES = pictures().unit(slice(0, 8))


def test_logits_are_admitted():
    require_logits(Linear(direction()), IMAGES, 2, "it")
    require_own_logits(Linear(direction()), IMAGES, "it")
    require_own_logits(Linear(direction()), IMAGES[:1], "it")


def test_a_tuple_is_refused():
    sound = Linear(direction())
    with pytest.raises(InputError, match=r"logits \(B, classes\), got a tuple"):
        require_logits(lambda images: (sound(images), images), IMAGES, 2, "it")


def test_a_model_that_works_in_place_is_refused():
    with pytest.raises(InputError, match="changes the images it is given"):
        require_logits(lambda images: Linear(direction())(images.sub_(0.1)), IMAGES, 2, "it")
    assert torch.equal(IMAGES, pictures().unit(slice(0, 8)))


def test_too_few_classes_are_refused():
    with pytest.raises(InputError, match="tells 2 classes apart, the data have 10"):
        require_logits(Linear(direction()), IMAGES, 10, "it")


def test_batch_statistics_are_refused_unless_they_are_at_rest():
    torch.manual_seed(0)
    network = nn.Sequential(Linear(direction()), nn.BatchNorm1d(2))
    with pytest.raises(InputError, match="among other images"):
        require_own_logits(lambda images: network(images), IMAGES, "it")
    network.eval()
    require_own_logits(lambda images: network(images), IMAGES, "it")
