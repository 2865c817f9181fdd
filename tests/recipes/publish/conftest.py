"""A reproduction whose attacks break something, and what was published of it, each made once; tests change copies."""

import dataclasses
import shutil

import pytest
import torch

pytest.importorskip("sklearn", reason="digits come with scikit-learn: pip install 'linocut[data]'")

from linocut.recipes.publish.publication import publish
from linocut.recipes.reproduce import scales
from linocut.recipes.reproduce.plan import Planner
from linocut.recipes.reproduce.shelf import Shelf
from linocut.recipes.reproduce.step import Workshop
from linocut.recipes.reproduce.work import Judgement

from ..reproduce.conftest import do
from ..reproduce.tiny import NUMERICS, shorten

CPU = torch.device("cpu")
KEPT = 5
BASE, FIXED = "digits/baseline/seed-0", "digits/fixed-pretrained/seed-0"


def breakable(data_set, row, seed, shelf, numerics):
    """A network that is right about most digits, judged twice at a radius that breaks them."""
    work = scales.smoke(data_set, row, seed, shelf, numerics).with_config(epochs=3, num_steps=1, batch_size=16)
    judged = (
        Judgement(suite="pgd-margin-1", n=12, batch_size=4, eps=0.2),
        Judgement(suite="random-noise", n=8, batch_size=4, eps=0.2),
    )
    return dataclasses.replace(work, judgements=judged)


def plan_at(out, root=None, rows=("fixed-pretrained", "baseline")):
    """The plan of these rows, and the workshop to carry it out in."""
    shop = Workshop(out=out, shelf=Shelf(root), device=CPU)
    return Planner(breakable, shop.shelf, NUMERICS).plan([("digits", row) for row in rows], (0,), "breakable"), shop


def put(out, results, images=KEPT):
    return publish(out, results, images=images, device=CPU)


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory):
    """A root that commands name; digits need nothing in it."""
    return tmp_path_factory.mktemp("data-root")


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory, data_folder):
    out = tmp_path_factory.mktemp("publishing") / "out"
    undo = shorten()
    try:
        do(*plan_at(out, data_folder))
    finally:
        undo()
    return out


@pytest.fixture(scope="session")
def published(reproduced, tmp_path_factory):
    results = tmp_path_factory.mktemp("published") / "results"
    put(reproduced, results)
    return results


@pytest.fixture
def moved(published, tmp_path, monkeypatch):
    """A copy of the results, elsewhere, seen from yet another folder."""
    shutil.copytree(published, tmp_path / "moved")
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "moved"
