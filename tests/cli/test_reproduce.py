"""`linocut reproduce` and `linocut demo` as a person types them."""

import json
from functools import partial
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

pytest.importorskip("sklearn", reason="digits come with scikit-learn: pip install 'linocut[data]'")

from linocut.cli import app
from linocut.cli.reproduce_tables import Narrator, print_plan
from linocut.recipes import demo as demo_recipe
from linocut.recipes.reproduce import scales
from linocut.recipes.reproduce.inheritance import TAKEN_OVER
from linocut.recipes.reproduce.interruption import Stopped
from linocut.recipes.reproduce.stamps import State

from ..recipes.reproduce.tiny import shorten, tiny


@pytest.fixture(autouse=True)
def tiny_smoke(monkeypatch):
    """The scale `smoke` in seconds."""
    undo = shorten()
    monkeypatch.setitem(scales.SCALES, "smoke", tiny)
    yield
    undo()


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


ONE = ("reproduce", "--dataset", "digits", "--row", "natural", "--scale", "smoke", "--device", "cpu")


LONG = "acab-pretrained+batch_size=128+learning_rate=0.1+epochs=50"


@pytest.mark.parametrize("row", ["acab-pretrained", LONG])
def test_the_plan_shows_names_whole_on_a_narrow_terminal(capsys, monkeypatch, row):
    monkeypatch.setenv("COLUMNS", "80")
    name = f"fashion-mnist/{row}/seed-0/ledger-strong"
    step = SimpleNamespace(name=name, title="put it before the network of baseline")
    told = {"seconds": 36000.0, "at_most": True, "whole_batches": True}
    reproduction = SimpleNamespace(
        plan=SimpleNamespace(steps=[step]),
        estimates={name: told},
        states={name: State.DUE},
        report=SimpleNamespace(notes=[]),
        seconds_left=36000.0,
        shop=SimpleNamespace(device="cpu"),
    )
    print_plan(reproduction)
    shown = capsys.readouterr().out
    parts = [word for word in shown.split() if len(word) > 3 and word in name]  # of a folded name
    assert "".join(parts) == f"fashion-mnist/{row}"
    assert "put it" in shown  # the other columns have room
    assert row != LONG or "at most 10.0 h" in shown.partition("Left to do")[0]


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(tmp_path):
    result = call(*ONE, "--out", tmp_path / "out", "--dry-run")
    assert result.exit_code == 0
    assert "small-net for " in result.stderr
    assert "train small-net naturally, 2 epochs" in result.stdout
    assert "suite pgd-margin-1 on 3 images" in result.stdout
    assert "Left to do: at most" in result.stdout
    assert "may be started several times" in result.stdout
    assert not (tmp_path / "out").exists()


def test_it_runs_to_the_report_and_the_second_time_does_nothing(tmp_path):
    first = call(*ONE, "--out", tmp_path / "out")
    assert first.exit_code == 0, first.output
    assert "took" in first.stderr
    assert str(tmp_path / "out" / "report" / "report.html") in first.stdout.replace("\n", "")
    again = call(*ONE, "--out", tmp_path / "out", "--json")
    record = json.loads(again.stdout)
    assert set(record) == {"report", "overview", "verdict"}
    plan = json.loads(call(*ONE, "--out", tmp_path / "out", "--dry-run", "--json").stdout)
    assert {step["state"] for step in plan["steps"]} == {"done"}
    assert [step["name"] for step in plan["steps"]][-1] == "report"


def test_nothing_is_timed_for_json(tmp_path, monkeypatch):
    monkeypatch.setattr("linocut.recipes.reproduce.calibration.Calibration.of", None)
    result = call(*ONE, "--out", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.output
    assert set(json.loads(result.stdout)) == {"report", "overview", "verdict"}
    steps = json.loads((tmp_path / "out" / "plan.json").read_text())["steps"]
    assert not any("seconds" in step for step in steps)


def test_a_step_is_told_by_its_place_in_the_plan_whoever_makes_it(capsys):
    steps = [SimpleNamespace(name=f"digits/{row}/seed-0/model", title="train") for row in ("natural", "baseline")]
    told = {"seconds": 60.0, "at_most": False}
    reproduction = SimpleNamespace(
        plan=SimpleNamespace(steps=steps),
        estimates={step.name: told for step in steps},
        states={step.name: State.DUE for step in steps},
    )
    narrator = Narrator(reproduction, shown=True)
    narrator.starts(steps[1], State.DUE)
    narrator.ends(steps[1], 90.0)
    for _ in range(3):
        narrator.waits(steps[0])
    narrator.starts(steps[0], State.DONE)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("[2/2] digits/baseline: train (about 2 min")
    assert lines[2:] == [
        "[1/2] waiting for another process: digits/natural/seed-0/model",
        "[1/2] digits/natural: train, done by another process",
    ]


def test_a_network_that_is_taken_over_says_nothing_of_how_long_trainings_take(capsys):
    steps = [SimpleNamespace(name=f"digits/{row}/seed-0/model", title="train") for row in ("natural", "baseline")]
    narrator = Narrator(
        SimpleNamespace(
            plan=SimpleNamespace(steps=steps),
            estimates={step.name: {"seconds": 3600.0, "at_most": False} for step in steps},
            states={step.name: State.DUE for step in steps},
        ),
        shown=True,
    )
    narrator.starts(steps[0], State.DUE)(1.0, TAKEN_OVER)
    narrator.ends(steps[0], 5.0)
    narrator.starts(steps[1], State.DUE)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("(")[2] for line in (lines[0], lines[2])] == ["about 2.0 h left)", "about 60 min left)"]


def test_when_the_minutes_are_over_the_status_and_the_advice_say_so(tmp_path):
    result = call(*ONE, "--out", tmp_path / "out", "--minutes", "0.0001")
    assert result.exit_code == 75
    assert "run the same command again to go on" in result.stderr


def test_a_signal_has_a_status_of_its_own(tmp_path, monkeypatch):
    def stop(*arguments, **settings):
        raise Stopped(15)

    monkeypatch.setattr("linocut.recipes.reproduce.reproduction.prepare", stop)
    result = call(*ONE, "--out", tmp_path / "out")
    assert result.exit_code == 143
    assert "stopped by SIGTERM" in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "there"),
    [
        ("--dataset", "svhn", "fashion-mnist"),
        ("--row", "best", "acab-retrained"),
        ("--table", "one", "ablation"),
        ("--scale", "huge", "small"),
    ],
)
def test_what_there_is_not_is_told_in_one_line(tmp_path, option, value, there):
    result = call("reproduce", "--out", tmp_path / "out", option, value)
    assert result.exit_code == 2
    assert there in result.stderr


def test_data_that_is_not_there_is_told(tmp_path, monkeypatch):
    monkeypatch.delenv("LINOCUT_DATA", raising=False)
    result = call("reproduce", "--dataset", "mnist", "--row", "baseline", "--scale", "small", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "mnist needs root" in result.stderr


@pytest.fixture
def cut_demo(monkeypatch):
    """The demo on a plan of seconds, without its photographs."""
    cut = partial(demo_recipe.prepare_demo, scale=tiny, rows=("baseline", "acab-retrained"))
    monkeypatch.setattr(demo_recipe, "prepare_demo", cut)
    monkeypatch.setattr(demo_recipe, "photograph_sections", lambda: ["<p>photographs</p>"])
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    return opened


def test_the_demo_ends_with_a_verdict_and_opens_its_page_where_it_can(tmp_path, cut_demo, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    result = call("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0, result.output
    page = tmp_path / "demo" / "index.html"
    text = page.read_text(encoding="utf-8")
    assert "ATTA + AC+AB, retrained, worst case" in text
    assert "ATTA + AC+AB, retrained, worst case" in " ".join(result.stdout.split())
    assert "was not run: what holds here may fall to it" in text
    assert 'href="report/report.html"' in text
    assert str(page) in result.stdout.replace("\n", "")
    assert cut_demo == []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("sys.platform", "linux")
    call("demo", "--out", tmp_path / "demo", "--no-open")
    assert cut_demo == []
    assert json.loads(call("demo", "--out", tmp_path / "demo", "--json").stdout)["page"] == str(page)
    assert cut_demo == [page.as_uri()]
