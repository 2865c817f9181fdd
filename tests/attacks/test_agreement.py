"""Our attacks beside other libraries' on one trained network: as strong, within a few examples."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from linocut.attacks import APGD, PGD, Dice, Square, ThreatModel


def library(name):
    """The module, whose own warnings on import are not ours to judge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"agreement with {name}: not installed")


@pytest.fixture(scope="module")
def task(count):
    """A CNN trained on scikit-learn's digits (8 by 8), and test images it gets right."""
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    images = torch.from_numpy(digits.images).float().div(16).unsqueeze(1)
    labels = torch.from_numpy(digits.target).long()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        F.cross_entropy(model(images[:1200]), labels[:1200]).backward()
        optimizer.step()
    model.eval().requires_grad_(False)
    images, labels = images[1200:], labels[1200:]
    right = (model(images).argmax(dim=1) == labels).nonzero().squeeze(1)[: count(200, 500)]
    return model, images[right].contiguous(), labels[right]


THREATS = {"linf": ThreatModel("linf", 0.13), "l2": ThreatModel("l2", 0.7)}
SQUARE_THREATS = {"linf": ThreatModel("linf", 0.15), "l2": ThreatModel("l2", 1.0)}
STEPS, QUERIES = 20, 100


def standing(model, images, labels):
    return (model(images).argmax(dim=1) == labels).float().mean().item() * 100


def ours(attack, task, threat, seed=0):
    model, images, labels = task
    return standing(model, attack.run(model, images, labels, threat, Dice.of(seed, len(images))).images, labels)


def agree(mine, theirs, n, *, stronger=3.0):
    """Between 20 and 70 % standing, never weaker by more than an example in a hundred, nor far stronger."""
    assert 15 < theirs < 75, f"{theirs} % standing tells nothing"
    assert mine <= theirs + 1.0 + 100 / n
    assert mine >= theirs - stronger - 100 / n


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_pgd_agrees_with_foolbox(task, norm):
    foolbox = library("foolbox")
    model, images, labels = task
    threat = THREATS[norm]
    kind = foolbox.attacks.LinfPGD if norm == "linf" else foolbox.attacks.L2PGD
    step = 2.5 * threat.eps / STEPS
    attack = kind(steps=STEPS, abs_stepsize=step, random_start=norm == "linf")
    wrapped = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
    torch.manual_seed(0)
    _, found, _ = attack(wrapped, images, labels, epsilons=threat.eps)
    mine = ours(PGD(num_steps=STEPS, step_size=step), task, threat)
    # In L2 ours may be stronger: it projects on ball and box together, which clipping does not.
    agree(mine, standing(model, found, labels), len(images), stronger=3.0 if norm == "linf" else 8.0)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_pgd_agrees_with_art(task, norm):
    evasion = library("art.attacks.evasion")
    estimators = library("art.estimators.classification")
    model, images, labels = task
    threat = THREATS[norm]
    classifier = estimators.PyTorchClassifier(
        model, nn.CrossEntropyLoss(), (1, 8, 8), 10, clip_values=(0, 1), device_type="cpu"
    )
    attack = evasion.ProjectedGradientDescentPyTorch(
        classifier,
        norm=np.inf if norm == "linf" else 2,
        eps=threat.eps,
        eps_step=2.5 * threat.eps / STEPS,
        max_iter=STEPS,
        num_random_init=int(norm == "linf"),
        verbose=False,
    )
    mine, theirs = [], []
    for seed in range(5):  # a start at random moves either by a point or two
        np.random.seed(seed)
        theirs.append(standing(model, torch.from_numpy(attack.generate(images.numpy(), labels.numpy())), labels))
        mine.append(ours(PGD(num_steps=STEPS), task, threat, seed))
    agree(np.mean(mine), np.mean(theirs), len(images), stronger=3.0 if norm == "linf" else 8.0)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_apgd_agrees_with_autoattack(task, norm):
    base = library("pyautoattack.autopgd_base")
    model, images, labels = task
    threat = THREATS[norm]
    for loss, name in (("ce", "cross_entropy"), ("dlr", "dlr")):
        attack = base.APGDAttack(
            model, norm={"linf": "Linf", "l2": "L2"}[norm], eps=threat.eps, n_iter=40, loss=loss, device="cpu"
        )
        found = attack.perturb(images, labels)
        mine = ours(APGD(num_steps=40, loss=name), task, threat)
        agree(mine, standing(model, found, labels), len(images), stronger=3.0 if norm == "linf" else 8.0)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_square_agrees_with_autoattack(task, norm):
    square = library("pyautoattack.square")
    model, images, labels = task
    threat = SQUARE_THREATS[norm]
    attack = square.SquareAttack(
        model, norm={"linf": "Linf", "l2": "L2"}[norm], eps=threat.eps, n_queries=QUERIES, device="cpu"
    )
    found = attack.perturb(images, labels)
    mine = ours(Square(num_queries=QUERIES), task, threat)
    # Random search: three standard deviations of the luck of 200 images come to some points.
    theirs = standing(model, found, labels)
    assert 15 < theirs < 85
    assert mine <= theirs + 4
