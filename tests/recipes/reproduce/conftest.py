"""A finished reproduction, made once; tests change copies of it."""

import shutil

import pytest
import torch

pytest.importorskip("sklearn", reason="digits come with scikit-learn: pip install 'linocut[data]'")

from linocut.recipes.reproduce import runner
from linocut.recipes.reproduce.shelf import Shelf
from linocut.recipes.reproduce.step import Workshop

from .tiny import NUMERICS, shorten, tiny_plan

SHELF = Shelf(None)


class Notes:
    """A listener that writes down what was made; `at` is called with a step's name whenever it gets on."""

    def __init__(self, at=lambda name, share: None):
        self.made, self.found, self.at = [], {}, at

    def starts(self, step, state):
        self.found[step.name] = state.value
        return lambda share, words: self.at(step.name, share)

    def ends(self, step, seconds):
        assert seconds >= 0
        self.made.append(step.name)

    def waits(self, step):
        raise AssertionError(f"nobody else is here, and yet it waits for {step.name}")


@pytest.fixture(autouse=True)
def short_attacks():
    undo = shorten()
    yield
    undo()


def shop_at(out):
    return Workshop(out=out, shelf=SHELF, device=torch.device("cpu"))


def do(plan, shop, **notes):
    """Carry out the plan; what was made."""
    listener = Notes(**notes)
    runner.carry_out(plan, shop, NUMERICS, {}, listener)
    return listener


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduction") / "out"
    shop = shop_at(out)
    undo = shorten()
    do(tiny_plan(shop), shop)
    undo()
    return out


@pytest.fixture
def copy(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "copy")
    return shop_at(tmp_path / "copy")
