"""The result file of benchmarks/certified.py: new studies join those of an earlier file."""

import importlib
import sys
from pathlib import Path

import pytest

pytest.importorskip("safetensors")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def certified(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("certified")
    for name in ("certified", "results"):
        sys.modules.pop(name, None)


def entry(name, proven, **own):
    row = {"eps_levels": 15.0, "natural": 98.0, "proven_by_intervals": 89.0, "proven": proven, "attacked": 96.0}
    return {**own, "study": {"name": name, "headline": 15.0}, "plan": {"epochs": 7}, "curve": [row]}


def test_a_new_study_replaces_its_own_and_keeps_the_others_with_their_facts(certified):
    earlier = {
        "date": "2026-01-01T00:00:00+00:00",
        "commit": "aaaaaaa",
        "studies": [entry("fixed-varied", 60), entry("fixed-mnist", 91)],
    }
    new = entry("fixed-mnist", 95, date="2026-02-02T00:00:00+00:00", commit="bbbbbbb")
    studies = certified.merged(new, earlier)
    assert [study["study"]["name"] for study in studies] == ["fixed-mnist", "fixed-varied"]
    assert [study["commit"] for study in studies] == ["bbbbbbb", "aaaaaaa"]
    again = certified.merged(entry("adaptive-mnist", 86, date="d", commit="c"), {**new, "studies": studies})
    assert [study["commit"] for study in again] == ["bbbbbbb", "c", "aaaaaaa"]
    lines = certified.table(studies).splitlines()
    assert len(lines) == 3
    assert "95.00" in lines[1]
    assert "2026-01-01 aaaaaaa" in lines[2]


def test_only_named_studies_are_run(certified):
    assert [study.name for study in certified.studies((0, 254), ["fixed-varied"])] == ["fixed-varied"]
    assert [study.name for study in certified.studies((0, 254), certified.NAMES)] == list(certified.NAMES)
