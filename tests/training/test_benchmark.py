"""The benchmark's own arithmetic, on a network that takes no time."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    specification = importlib.util.spec_from_file_location("benchmark_training", BENCHMARKS / "training.py")
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "benchmark_training", module)
    specification.loader.exec_module(module)
    return module


QUICK = ["--device", "cpu", "--architecture", "small-net", "--examples", "72", "--side", "8", "--no-compile"]


def test_parts_of_epochs_are_scaled_and_said_so(benchmark, tmp_path, capsys):
    words = [*QUICK, "--cases", "16:1:none"]
    for steps, timed, extrapolated in ((2, 2, True), (0, 5, False)):
        record = benchmark.main([*words, "--timed-steps", str(steps), "--out", str(tmp_path)])
        case = record["cases"][0]
        assert (case["timed_steps"], case["steps_per_epoch"], case["extrapolated"]) == (timed, 5, extrapolated)
        batches = 72 / 16 if extrapolated else 5
        expected = case["step_milliseconds"] / 1e3 * batches + case["plan_seconds"]
        assert case["epoch_seconds"] == pytest.approx(expected)
    written = json.loads(next(tmp_path.glob("training-*.json")).read_text())
    assert "random pictures, no data set" in written["images"]
    assert "16:1:none" in capsys.readouterr().out


def test_a_failing_case_is_recorded_and_cases_of_one_batch_share_a_network(benchmark, tmp_path, capsys, monkeypatch):
    made = []
    make = benchmark.make_trainer
    monkeypatch.setattr(benchmark, "make_trainer", lambda *words: made.append(make(*words)) or made[-1])
    cases = ["16:1:none", "16:2:acab", "16:1:magic", "16:1:none", "8:1:none"]
    record = benchmark.main([*QUICK, "--timed-steps", "1", "--out", str(tmp_path), "--cases", *cases])
    assert [case["case"] for case in record["cases"]] == cases
    assert ["error" in case for case in record["cases"]] == [False, False, True, False, False]
    assert [trainer.config.batch_size for trainer in made] == [16, 16, 8]  # the first serves two; failing drops it
    assert "magic" in capsys.readouterr().out.splitlines()[-3]


def test_cases_beyond_the_budget_are_skipped_and_named(benchmark, tmp_path, capsys):
    record = benchmark.main([*QUICK, "--budget-seconds", "0", "--out", str(tmp_path), "--cases", "16:1:none"])
    assert (record["cases"], record["skipped"]) == ([], ["16:1:none"])
    assert "16:1:none skipped" in capsys.readouterr().out
