"""AutoAttack's four parts as entries of ours, in both versions that people have."""

import sys
import types

import pytest
import torch
from torch import nn

from linocut.attacks import Dice, NotApplicable, ThreatModel
from linocut.attacks import autoattack as adapter
from linocut.errors import InputError


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(300, 16), nn.ReLU(), nn.Linear(16, 5)).eval()


@pytest.fixture(scope="module")
def batch(network):
    images = torch.rand((6, 3, 10, 10), generator=torch.Generator().manual_seed(1))
    labels = network(images).argmax(1)
    labels[0] = (labels[0] + 1) % 5  # wrong from the start
    return images, labels


@pytest.fixture(params=adapter.PACKAGES)
def package(request, monkeypatch):
    """Each version that is installed, with the other out of sight."""
    pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    for other in set(adapter.PACKAGES) - {request.param}:
        monkeypatch.setitem(sys.modules, other, None)
    return request.param


@pytest.mark.parametrize("part", adapter.PARTS)
@pytest.mark.parametrize("threat", [ThreatModel("linf", 0.4), ThreatModel("l2", 6.0)], ids=["linf", "l2"])
def test_every_part_breaks_a_weak_network_inside_the_ball(network, batch, part, threat, package, capsys):
    images, labels = batch
    (attack,) = [a for a in adapter.standard() if a.part == part]
    assert attack.library.split()[0] == package
    state = torch.random.get_rng_state()
    result = attack.run(network, images, labels, threat, Dice.of(0, len(images)))
    assert torch.equal(torch.random.get_rng_state(), state), "the caller's generator must not move"
    assert result.broken.all()
    assert torch.equal(result.prediction, network(result.images).argmax(1))
    assert threat.contains(result.images.double(), images.double(), slack=1e-6).all()
    assert torch.equal(result.images[0], images[0]), "what was wrong already is left alone"
    assert (result.queries > 0).all()
    assert (result.steps == 0).all() == (part == "square")
    again = attack.run(network, images, labels, threat, Dice.of(0, len(images)))
    assert torch.equal(again.images, result.images)
    assert capsys.readouterr().out == ""


def test_a_zero_radius_changes_nothing(network, batch, package):
    images, labels = batch
    result = adapter.standard()[0].run(network, images, labels, ThreatModel("linf", 0.0), Dice.of(0, 6))
    assert torch.equal(result.images, images)
    assert result.broken.tolist() == [True] + [False] * 5


def test_too_few_classes_are_said(batch, package):
    two = nn.Sequential(nn.Flatten(), nn.Linear(300, 2))
    images = batch[0]
    with pytest.raises(NotApplicable, match="4 classes"):
        adapter.standard()[1].run(two, images, two(images).argmax(1), ThreatModel("linf", 0.1), Dice.of(0, 6))


class AuthorsVersion:
    """The constructor and the method of the version in the authors' repository; it shifts images by eps."""

    def __init__(
        self,
        model,
        norm="Linf",
        eps=0.3,
        seed=None,
        verbose=True,
        attacks_to_run=[],  # noqa: B006 - as it stands there
        version="standard",
        is_tf_model=False,
        device="cuda",
        log_path=None,
    ):
        assert not verbose
        self.model, self.eps, self.norm, self.version = model, eps, norm, version
        self.apgd_targeted, self.fab = types.SimpleNamespace(), types.SimpleNamespace()

    def run_standard_evaluation(self, x_orig, y_orig, bs=250, return_labels=False):
        assert (self.norm, self.version, bs) == ("Linf", "standard", 6)
        assert self.attacks_to_run == ["fab-t"]
        assert self.fab.n_target_classes == 4
        print("Warning: there are 2 points with zero gradient!")
        return (x_orig + 2 * self.eps).clamp(max=1)


def test_the_authors_version_is_taken_too(network, batch, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyautoattack", None)
    module = types.ModuleType("autoattack")
    module.AutoAttack = AuthorsVersion
    monkeypatch.setitem(sys.modules, "autoattack", module)
    images, labels = batch
    attack = adapter.standard()[2]
    assert attack.library.startswith("autoattack")
    result = attack.run(network, images, labels, ThreatModel("linf", 0.1), Dice.of(0, 6))
    assert torch.allclose(result.images, (images + 0.1).clamp(max=1)), "brought back into the ball"
    said = capsys.readouterr()
    assert said.out == "", "a verb may be writing JSON there"
    assert "zero gradient" in said.err


def test_without_any_it_says_what_to_install(monkeypatch):
    for name in adapter.PACKAGES:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"linocut\[autoattack\]"):
        adapter.standard()
