"""Several processes in one folder: every step is made once, and nobody waits for the dead."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from linocut.errors import InputError
from linocut.recipes.reproduce import locks, runner, stamps
from linocut.recipes.reproduce.interruption import OUT_OF_TIME, Stopped, Stopwatch
from linocut.recipes.reproduce.reproduction import prepare

from .conftest import NUMERICS, Notes, do, shop_at
from .test_runner import ALL, BASE
from .tiny import tiny, tiny_plan

ROWS = ["fixed-pretrained", "baseline"]
JOBS = {
    "two": {"crews": [ROWS] * 2},
    "three": {"crews": [ROWS] * 3},
    "differing": {"crews": [["baseline"], ["fixed-pretrained"]]},
    "killed": {"rows": ROWS, "name": f"{BASE}/model"},
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The folder of all jobs, and the exit statuses of each."""
    folder = tmp_path_factory.mktemp("shared")
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("crew.py")), str(folder), json.dumps(JOBS)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


def noted(folder, job):
    """What the processes of a job wrote down: (process, event, step, ...)."""
    return [json.loads(line) for line in (folder / f"{job}.diary").read_text().splitlines()]


@pytest.mark.parametrize(("job", "processes"), [("two", 2), ("three", 3)])
def test_every_step_is_made_once_and_the_outcome_is_that_of_one(shared, finished, job, processes):
    folder, statuses = shared
    lines = noted(folder, job)
    assert statuses[job] == [0] * processes
    assert Counter(line[2] for line in lines if line[1] == "ends") == Counter(ALL)
    for process in {line[0] for line in lines}:
        known = [line[2] for line in lines if line[0] == process and line[1] == "starts"]
        assert sorted(known) == sorted(ALL)  # each hears of every step, made here or elsewhere, once
        hashed = Counter(line[2] for line in lines if line[0] == process and line[1] == "hashes")
        assert set(hashed.values()) == {1}  # however long it waited
    assert len({line[0] for line in lines if line[1] == "ends"}) > 1  # the work was shared indeed
    for name in ("overview.csv", f"{BASE}/model/card.json"):
        assert (folder / job / name).read_bytes() == (finished / name).read_bytes()


def test_other_rows_share_the_steps_that_both_need(shared):
    folder, statuses = shared
    assert statuses["differing"] == [0, 0]
    made = Counter(line[2] for line in noted(folder, "differing") if line[1] == "ends")
    assert made.pop("report") == 2  # each has its own
    assert made == Counter(name for name in ALL if name != "report")
    told = json.loads((folder / "differing" / "plan.json").read_text())
    assert {step["name"] for step in told["steps"]} == set(ALL)


def test_the_step_of_a_killed_process_is_taken_over(shared, finished):
    folder, statuses = shared
    assert statuses["killed"] == [-signal.SIGKILL, 0]
    first = next(line[0] for line in noted(folder, "killed") if line[1] == "stuck")
    second = [line for line in noted(folder, "killed") if line[0] != first]
    assert any(line[1:] == ["waits", f"{BASE}/model"] for line in second)
    assert any(line[1:] == ["starts", f"{BASE}/model", "go on"] for line in second)
    assert (folder / "killed" / "overview.csv").read_bytes() == (finished / "overview.csv").read_bytes()


def test_other_settings_for_the_same_step_are_refused_while_somebody_works(copy):
    with locks.member(copy), pytest.raises(InputError, match=f"other settings for {BASE}/model"):
        do(tiny_plan(copy, epochs=1), copy)
    with locks.member(copy):
        assert do(tiny_plan(copy), copy).made == []


def test_two_that_began_at_once_with_other_numerics_do_not_mix_them(copy):
    other = replace(NUMERICS, precision="bfloat16")
    with pytest.raises(InputError, match="start this one again"):
        runner.carry_out(tiny_plan(copy), copy, other, {}, Notes())


def test_a_plan_of_other_rows_is_kept_and_one_of_other_settings_forgotten(copy):
    def named():
        return [step["name"] for step in json.loads((copy.out / "plan.json").read_text())["steps"]]

    do(tiny_plan(copy, rows=("baseline",)), copy)
    assert sorted(named()) == sorted(ALL)
    assert named()[-1] == "report"
    do(tiny_plan(copy, rows=("baseline",), epochs=1), copy)
    assert named() == [name for name in ALL if name.startswith(BASE)] + ["report"]


def test_the_minutes_of_one_that_waits_end_too(tmp_path):
    shop = shop_at(tmp_path / "out")
    plan = tiny_plan(shop, rows=("baseline",))
    waited_for = []

    class Patient(Notes):
        def waits(self, step):
            waited_for.append(step.name)

    watch = Stopwatch(0.01)
    with locks.free(plan.steps[0], shop), pytest.raises(Stopped) as stopped, watch:
        runner.carry_out(plan, shop, NUMERICS, {}, Patient())
    assert watch.status(stopped.value) == OUT_OF_TIME
    assert set(waited_for) == {f"{BASE}/model"}
    assert not (shop.out / BASE).exists()


def test_a_folder_that_another_process_is_just_beginning_is_no_others(tmp_path):
    (tmp_path / "locks").mkdir()
    (tmp_path / ".plan.json.7.unfinished").write_text("{")
    runner.check_folder(shop_at(tmp_path))


def test_what_was_timed_on_this_device_is_not_timed_again(tmp_path, monkeypatch):
    asked = {"scale": tiny, "seeds": [0], "root": None, "device": torch.device("cpu"), "title": "t"}
    heard = []
    first = prepare([("digits", "baseline")], out=tmp_path / "out", tell=heard.append, **asked)
    assert len(heard) == 2  # its attacks and its training

    class Stop(Notes):
        def starts(self, step, state):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        first.carry_out(Stop())
    again = prepare([("digits", "baseline")], out=tmp_path / "out", tell=heard.append, **asked)
    assert again.estimates == first.estimates
    assert len(heard) == 2
    monkeypatch.setattr("platform.machine", lambda: "another")
    prepare([("digits", "baseline")], out=tmp_path / "out", tell=heard.append, **asked)
    assert len(heard) == 4


def test_nothing_is_timed_where_nobody_asks(tmp_path):
    heard = []
    made = prepare(
        [("digits", "baseline")],
        scale=tiny,
        seeds=[0],
        out=tmp_path / "out",
        root=None,
        device=torch.device("cpu"),
        title="t",
        timed=False,
        tell=heard.append,
    )
    assert (heard, made.estimates) == ([], {})


def test_what_was_hashed_for_the_plan_is_not_hashed_again_for_its_execution(copy, monkeypatch):
    hashed, plain = [], stamps.outputs
    monkeypatch.setattr(stamps, "outputs", lambda step, shop: hashed.append(step.name) or plain(step, shop))
    plan, seen = tiny_plan(copy), {}
    runner.states(plan, copy, seen)
    runner.carry_out(plan, copy, NUMERICS, {}, Notes(), seen)
    assert hashed == ALL
