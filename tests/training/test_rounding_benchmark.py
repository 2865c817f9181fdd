"""benchmarks/canvas_rounding.py: the comparison of stores, seed by seed."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def rounding(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("canvas_rounding")
    for name in ("canvas_rounding", "results"):
        sys.modules.pop(name, None)


def test_stores_are_compared_seed_by_seed(rounding):
    robust = {"float32": {0: 50.0, 1: 60.0, 2: 55.0}, "int8": {0: 51.0, 1: 59.0, 2: 57.0}, "half": {1: 61.0}}
    runs = [
        {"store": store, "seed": seed, "clean": 80.0, "robust": value}
        for store, by_seed in robust.items()
        for seed, value in by_seed.items()
    ]
    found = rounding.compared(runs)
    assert found["float32"]["minus_float32"] == 0
    assert (found["int8"]["robust"], found["int8"]["range"]) == (55.67, [51.0, 59.0])
    assert found["int8"]["minus_float32"] == pytest.approx(0.67)  # mean of +1, -1, +2
    assert found["int8"]["standard_error"] == pytest.approx(0.88)
    assert (found["half"]["minus_float32"], found["half"]["standard_error"]) == (1.0, None)


def test_the_runs_differ_in_the_store_and_the_seed_alone(rounding):
    words = {"data": "fashion-mnist", "network": "small-net", "device": "cpu", "epochs": 3, "batch_size": 128}
    options = rounding.argparse.Namespace(**words)
    configs = [rounding.config_for(options, store, 1).to_json() for store in rounding.STORES]
    assert [config.pop("canvas_store") for config in configs] == ["float32", "half", "int8"]
    assert configs[0] == configs[1] == configs[2]
    assert configs[0]["learning_rate"] == pytest.approx(0.05 / 4)
