"""The ART defence: true forward, right gradients, and three of ART's attacks through it."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from linocut.errors import InputError
from linocut.models import Defended
from linocut.transform.modules import EssentialFeatures

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("art", reason="pip install linocut[art]")
    from art.attacks.evasion import (
        AutoProjectedGradientDescent,
        ProjectedGradientDescent,
        ProjectedGradientDescentPyTorch,
        SquareAttack,
    )
    from art.estimators.classification import PyTorchClassifier

    from linocut.adapters.art import EssentialFeaturesART

pytestmark = pytest.mark.filterwarnings("ignore")  # ART's own
EPS = 0.3


@pytest.fixture(scope="module")
def task():
    """A network with smooth 12x12 images it gets right, and the classifier ART attacks."""
    dice = torch.Generator().manual_seed(0)
    images = nn.functional.interpolate(torch.rand((10, 3, 3, 3), generator=dice), size=(12, 12), mode="bilinear")
    network = nn.Sequential(nn.Flatten(), nn.Linear(432, 16), nn.ReLU(), nn.Linear(16, 6))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(0.2 * torch.randn(parameter.shape, generator=dice))
    model = Defended(EssentialFeatures(), network).eval()
    labels = model(images).argmax(1)
    target = PyTorchClassifier(
        network,
        nn.CrossEntropyLoss(),
        (3, 12, 12),
        6,
        clip_values=(0, 1),
        preprocessing_defences=[EssentialFeaturesART(device_type="cpu")],
        device_type="cpu",
    )
    return model, images.contiguous(), labels, target


def test_predictions_are_those_of_the_defended_model(task):
    model, images, _, target = task
    assert np.array_equal(target.predict(images.numpy()), model(images).detach().numpy())


def test_gradients_are_those_of_the_defended_model(task):
    model, images, labels, target = task
    leaf = images.clone().requires_grad_()
    nn.functional.cross_entropy(model(leaf), labels, reduction="sum").backward()
    ours = leaf.grad.numpy()
    theirs = target.loss_gradient(images.numpy(), nn.functional.one_hot(labels, 6).numpy().astype(np.float32))
    scale = (theirs.ravel() @ ours.ravel()) / (ours.ravel() @ ours.ravel())  # ART takes the mean over the batch
    assert scale > 0
    assert np.abs(ours).max() > 0
    assert np.allclose(theirs, scale * ours, rtol=1e-3, atol=1e-6 * np.abs(theirs).max())


@pytest.mark.parametrize(
    "attack",
    [
        lambda target: ProjectedGradientDescent(target, eps=EPS, eps_step=0.05, max_iter=10, verbose=False),
        lambda target: ProjectedGradientDescentPyTorch(target, eps=EPS, eps_step=0.05, max_iter=10, verbose=False),
        lambda target: AutoProjectedGradientDescent(target, eps=EPS, max_iter=10, nb_random_init=1, verbose=False),
        lambda target: SquareAttack(target, eps=EPS, max_iter=100, nb_restarts=1, verbose=False),
    ],
    ids=["pgd", "pgd-pytorch", "apgd", "square"],
)
def test_attacks_run_and_break(task, attack):
    model, images, labels, target = task
    torch.manual_seed(0)
    np.random.seed(0)
    points = torch.from_numpy(attack(target).generate(images.numpy(), labels.numpy()))
    assert float((points - images).abs().max()) <= EPS + 1e-6
    assert (model(points).argmax(1) != labels).float().mean() >= 0.5


def test_settings_are_checked_and_can_be_changed():
    defence = EssentialFeaturesART.preset("mnist", image_size=14, apply_fit=False)
    assert not defence.apply_fit
    assert defence.apply_predict
    assert defence.transform.settings() == EssentialFeatures.preset("mnist", image_size=14).settings()
    defence.set_params(settings={"eps": 0.1})
    assert defence.transform.settings()["eps"] == 0.1
    with pytest.raises(InputError, match="eps"):
        EssentialFeaturesART(eps=8)
    defence.set_params(eps=0.2, softness=0.5)
    assert defence.transform.settings()["eps"] == 0.2
    with pytest.raises(TypeError, match="colours"):
        defence.set_params(colours=3)
    defence.set_params(settings={"eps": 0.1})
    x = np.random.default_rng(0).random((2, 3, 5, 5), dtype=np.float32)
    painted, labels = defence(x, np.array([1, 2]))
    assert np.array_equal(painted, EssentialFeatures(eps=0.1)(torch.from_numpy(x)).numpy())
    assert labels.tolist() == [1, 2]
