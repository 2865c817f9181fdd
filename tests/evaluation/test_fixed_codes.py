"""A fixed codebook under `linocut evaluate`: its own published attack, the cross-check, and codes of test images."""

import dataclasses

import pytest
import torch

from linocut.attacks.chen import ChenLoop
from linocut.data import load
from linocut.evaluation.balls import balls
from linocut.evaluation.findings import find
from linocut.evaluation.hearing import fixed_codebook
from linocut.evaluation.request import Request, carry_out
from linocut.evaluation.suites import SUITES, plan
from linocut.models import Architecture, Card, Defended, build, save
from linocut.transform.modules import AdaptiveCodebook, FixedCodebook


@pytest.fixture(scope="module")
def digits():
    pytest.importorskip("sklearn")
    return load("digits", split="train", image_size=8), load("digits", split="test", image_size=8)


KEPT = {"clean", "measure/seen", "linf/pgd-published", "linf/chen-published", "linf/pgd-past-codes"}


@pytest.fixture
def short(monkeypatch):
    """Plans cut down to what concerns a fixed codebook."""
    monkeypatch.setattr(
        "linocut.evaluation.hearing.plan", lambda *a, **k: [entry for entry in plan(*a, **k) if entry.name in KEPT]
    )


def saved(folder, book):
    network = build("small-net", 10, 1)
    card = Card(architecture=Architecture(name="small-net", num_classes=10, in_channels=1), data_set="digits")
    save(folder, Defended(book, network), card)
    return str(folder)


@pytest.mark.parametrize("suite", SUITES, ids=lambda name: f"suite-{name}")
def test_every_suite_gains_the_loop_and_the_cross_check(suite):
    radii = balls("mnist", 784, ("linf", "l2"))
    with_codes = {entry.name: entry for entry in plan(suite, radii, fixed_codes=True)}
    without = {entry.name for entry in plan(suite, radii)}
    assert with_codes.keys() - without == {f"{n}/{a}" for n in radii for a in ("chen-published", "pgd-past-codes")}
    theirs = with_codes["linf/chen-published"]
    assert theirs.attack == ChenLoop(name="chen-published", num_steps=100, step_size=0.01, surrogate="soft")
    assert theirs.column == "published"
    straight = with_codes["l2/pgd-past-codes"]
    assert (straight.attack.surrogate, straight.attack.any_iterate, straight.column) == ("identity", True, "worst")


def test_end_to_end(digits, tmp_path, short):
    model = saved(tmp_path / "model", FixedCodebook.fit(digits[0], 2, 153))
    request = Request(model=model, data="digits", out=tmp_path / "ledger", suite="fast", norm="linf", n=4, image_size=8)
    record = carry_out(request, lambda *_: None)
    assert record.published("linf").keys() == {"linf/pgd-published", "linf/chen-published"}
    assert record.worst("linf").percent <= min(share.percent for share in record.published("linf").values())
    (leak,) = [finding for finding in find(record) if finding.code == "leak"]
    assert leak.status == "ok"


def test_codes_of_the_test_images_are_a_leak(digits, tmp_path, short):
    """fit refuses them; a codebook that says it saw them, however it came about, fails the finding."""
    disguised = dataclasses.replace(digits[1], split="train")
    model = saved(tmp_path / "model", FixedCodebook.fit(disguised, 2, 153))
    request = Request(model=model, data="digits", out=tmp_path / "ledger", suite="fast", norm="linf", n=2, image_size=8)
    (leak,) = [finding for finding in find(carry_out(request, lambda *_: None)) if finding.code == "leak"]
    assert leak.status == "fail"


def test_other_transforms_are_not_taken_for_one():
    network = torch.nn.Flatten()
    assert fixed_codebook(Defended(AdaptiveCodebook(), network)) is None
    assert fixed_codebook(Defended(None, network)) is None
    assert fixed_codebook(network) is None
    assert fixed_codebook(Defended(FixedCodebook.depth(2), network))["origin"]["builder"] == "depth"
