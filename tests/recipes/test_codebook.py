"""The paper's codebook of a data set, and what is told of one."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from linocut.recipes import codebook
from linocut.transform.modules import FixedCodebook


@pytest.mark.parametrize(
    ("name", "k", "r"), [("mnist", 2, 153), ("digits", 2, 153), ("gtsrb", 500, 16), ("folder", 300, 16)]
)
def test_a_set_has_the_papers_numbers_unless_others_are_given(monkeypatch, name, k, r):
    asked = []

    def load(*given):
        asked.append(given)
        pixels = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 1, 8, 8), dtype=np.uint8))
        return SimpleNamespace(pixels=pixels, split="train", name=name, sha256="abc")

    monkeypatch.setattr(codebook, "load", load)
    origin = codebook.fit_on(name, Path("root"), 8, k=None, r=None).settings()["origin"]
    assert (origin["k"], origin["r"], origin["data"]) == (k, r, name)
    origin = codebook.fit_on(name, Path("root"), 8, k=5, r=0, builder="density").settings()["origin"]
    assert (origin["k"], origin["r"]) == (5, 0)
    assert asked == [(name, Path("root"), "train", 8)] * 2


def test_a_codebook_of_data_is_described_with_its_shares():
    pixels = torch.tensor([[0, 0, 0, 100, 100, 250, 250, 250]], dtype=torch.uint8).view(1, 1, 2, 4)
    told = codebook.described(FixedCodebook.fit(pixels, 3, 10), Path("book.json"))
    assert told.title == "book.json: density codebook"
    assert told.colors == [[0], [250], [100]]
    assert told.shares == [37.5, 37.5, 25]
    assert told.separations == [100, 150, 100]
    assert told.smallest_separation == 100


def test_a_given_code_has_no_share_and_no_distance():
    told = codebook.described(FixedCodebook(colors=[[9, 9, 9]]), Path("a/own.json"))
    assert (told.title, told.origin) == ("own.json: given codebook", {})
    assert (told.shares, told.smallest_separation) == ([None], None)
