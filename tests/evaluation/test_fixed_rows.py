"""benchmarks/fixed_rows.py: from a recipe to accuracies with intervals, and who is the stronger attack."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def fixed_rows(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("fixed_rows")
    for name in ("fixed_rows", "results"):
        sys.modules.pop(name, None)


@pytest.fixture
def short(fixed_rows, monkeypatch):
    """Attacks of a few steps and queries."""
    full = fixed_rows.plan

    def cut(entry):
        few = {name: 3 for name in ("num_steps", "num_queries") if hasattr(entry.attack, name)}
        limit = 5 if entry.name.endswith("square-published") else entry.limit  # as in the paper, fewer than the rest
        return replace(entry, attack=replace(entry.attack, **few), limit=limit) if few else entry

    monkeypatch.setattr(fixed_rows, "plan", lambda *words, **more: [cut(entry) for entry in full(*words, **more)])
    monkeypatch.setattr("linocut.training.run.draw_curves", lambda out: None)


def test_each_row_is_trained_and_attacked_and_written_at_once(fixed_rows, short, tmp_path):
    pytest.importorskip("sklearn")
    words = ["--data", "digits", "--epochs", "1", "--n", "12", "--device", "cpu", "--set", "batch_size=256"]
    places = ["--work", str(tmp_path / "work"), "--out", str(tmp_path)]
    record = fixed_rows.main([*words, *places, "--rows", "natural-fixed-pretrained", "natural"])
    behind, plain = record["models"]
    assert (behind["codes"], plain["codes"]) == (2, None)
    for norm in ("linf", "l2"):
        attacks = behind["norms"][norm]["attacks"]
        assert attacks.keys() == {"pgd-published", "chen-published", "pgd-past-codes", "square-published"}
        assert all(share["low"] <= share["percent"] <= share["high"] for share in attacks.values())
        assert [share["n"] for name, share in attacks.items() if "square" not in name] == [12, 12, 12]
        everybody = [share["count"] for share in attacks.values() if share["n"] == 12]
        assert behind["norms"][norm]["worst"]["count"] <= min(everybody)
        met_all = behind["norms"][norm]["worst_of_those_that_met_all"]
        assert met_all["n"] == attacks["square-published"]["n"] == 5
        assert met_all["count"] <= attacks["square-published"]["count"]
        assert behind["norms"][norm]["square_against_theirs"]["stronger"] in ("square", "theirs", "neither")
        assert plain["norms"][norm]["attacks"].keys() == {"pgd-published", "square-published"}
    assert json.loads(next(tmp_path.glob("fixed-rows-*.json")).read_text())["models"] == record["models"]
    again = fixed_rows.main([*words, *places, "--rows", "natural-fixed-pretrained"])["models"][0]
    assert again["trained_seconds"] is None  # the model that stands there is taken
    assert again["norms"] == behind["norms"]
    assert fixed_rows.main([*words, *places, "--minutes", "-1"])["left"][0] == "smoke/baseline"


def test_a_failure_is_recorded(fixed_rows, tmp_path):
    words = ["--data", "mnist", "--rows", "baseline", "--root", str(tmp_path), "--work", str(tmp_path / "work")]
    (found,) = fixed_rows.main([*words, "--device", "cpu", "--out", str(tmp_path)])["models"]
    assert "missing" in found["error"]


@pytest.mark.parametrize(
    ("square", "theirs", "stronger"),
    [(range(10), range(0), "square"), (range(5), range(20), "theirs"), (range(10), range(8), "neither")],
)
def test_the_stronger_attack_breaks_more_of_what_the_other_does_not(fixed_rows, square, theirs, stronger):
    def rows(broken):
        return {i: SimpleNamespace(broken=i in broken) for i in range(30)}

    record = SimpleNamespace(of={"l2/chen-published": rows(theirs), "l2/square-published": rows(square)})
    found = fixed_rows.duel(record, "l2")
    assert (found["n"], found["stronger"]) == (30, stronger)
    assert found["only_square_breaks"] - found["only_theirs_breaks"] == len(square) - len(theirs)
