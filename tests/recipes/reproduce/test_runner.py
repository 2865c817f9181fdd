"""What is done is not done again; what changed, and all after it, is."""

import csv
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.evaluation import hearing
from linocut.evaluation.quick import UnfaithfulCopy
from linocut.recipes.reproduce import runner, stamps
from linocut.recipes.reproduce.interruption import OUT_OF_TIME, Stopped, Stopwatch
from linocut.recipes.reproduce.step import remove

from .conftest import do, shop_at
from .tiny import tiny_plan

BASE, FIXED = "digits/baseline/seed-0", "digits/fixed-pretrained/seed-0"
ALL = [
    f"{BASE}/model",
    f"{FIXED}/codebook",
    f"{FIXED}/model",
    f"{FIXED}/ledger-pgd-margin-1",
    f"{BASE}/ledger-pgd-margin-1",
    f"{BASE}/ledger-pgd-ce-1",
    "report",
]


def test_the_folder_holds_what_the_plan_names(finished):
    for name in (
        "plan.json",
        "report/report.html",
        "overview.md",
        "overview.csv",
        "overview.svg",
        f"{FIXED}/codebook.json",
    ):
        assert (finished / name).is_file()
    assert (finished / BASE / "model" / "card.json").is_file()
    assert [step["name"] for step in json.loads((finished / "plan.json").read_text())["steps"]] == ALL
    assert not (finished / BASE / "checkpoints").exists()


def test_nothing_is_done_twice(copy):
    listener = do(tiny_plan(copy), copy)
    assert listener.made == []
    assert set(listener.found.values()) == {"done"}


def test_a_network_is_trained_once_for_all_rows_that_stand_on_it(finished):
    cards = [json.loads((finished / place / "model" / "card.json").read_text()) for place in (BASE, FIXED)]
    assert cards[0]["weights"]["sha256"] == cards[1]["weights"]["sha256"]
    assert cards[1]["recipe"]["network_of"] == "smoke/baseline"
    assert cards[1]["transform"]["class"] == "FixedCodebook"


def test_a_changed_setting_redoes_the_training_and_all_after_it(copy):
    made = do(tiny_plan(copy, epochs=1), copy).made
    assert made == [name for name in ALL if not name.endswith("codebook")]
    assert do(tiny_plan(copy, epochs=1), copy).made == []


def test_a_training_begun_before_a_setting_existed_is_gone_on_with(copy):
    step = tiny_plan(copy).steps[0]
    file = copy.out / BASE / "config.json"
    held = json.loads(file.read_text())
    assert held.pop("half_weights") is False
    file.write_text(json.dumps(held))
    assert step.can_go_on(copy)
    file.write_text(json.dumps({**held, "half_weights": True}))
    assert not step.can_go_on(copy)


def test_another_seed_leaves_the_first_alone(copy):
    made = do(tiny_plan(copy, rows=("baseline",), seeds=(0, 1)), copy).made
    assert made == [name.replace("seed-0", "seed-1") for name in ALL if name.startswith(BASE)] + ["report"]
    rows = list(csv.DictReader((copy.out / "overview.csv").read_text().splitlines()))
    assert {row["seeds"] for row in rows} == {"0 1"}
    assert all(float(row["low"]) <= float(row["mean"]) <= float(row["high"]) for row in rows)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("pattern", "redone"),
    [
        (f"{FIXED}/codebook.json", {f"{FIXED}/codebook"}),
        (f"{BASE}/model/weights-*", {f"{BASE}/model"}),
        (f"{FIXED}/ledger-pgd-margin-1/rows.jsonl", {f"{FIXED}/ledger-pgd-margin-1"}),
        (f"{FIXED}/ledger-pgd-margin-1/images/*/*", {f"{FIXED}/ledger-pgd-margin-1"}),
        (f"{BASE}/ledger-pgd-ce-1.stamp.json", {f"{BASE}/ledger-pgd-ce-1"}),
        ("overview.md", {"report"}),
        ("overview.svg", {"report"}),
    ],
)
def test_a_damaged_artefact_is_made_again_and_the_rest_agrees_with_it(copy, finished, pattern, redone):
    flip(next(iter(sorted(copy.out.glob(pattern)))))
    made = set(do(tiny_plan(copy), copy).made)
    assert redone <= made
    # The same bits come out, so what stands on them still holds; a ledger alone carries times that differ.
    assert made - redone <= {"report"}
    assert (copy.out / "overview.csv").read_text() == (finished / "overview.csv").read_text()


def test_a_missing_file_is_made_again(copy):
    (copy.out / BASE / "model" / "card.json").unlink()
    assert do(tiny_plan(copy), copy).made == [f"{BASE}/model"]


def test_a_ledger_that_was_damaged_half_way_is_not_gone_on_with(copy):
    plan = tiny_plan(copy)
    ledger = copy.out / ALL[-2]
    (ledger / "parts").mkdir(exist_ok=True)
    lines = (ledger / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (ledger / "rows.jsonl").unlink()
    (ledger / "parts" / "rank-0.jsonl").write_bytes(b"".join([lines[0][:-9] + b"\n", *lines[1:5]]))
    stamps.begin(plan.steps[-2], copy)
    assert runner.states(plan, copy, {})[ALL[-2]] is stamps.State.DUE


def test_what_a_killed_run_left_unfinished_is_no_outcome(copy):
    plan, name = tiny_plan(copy), ALL[-2]
    (copy.out / f"{name}.stamp.json").unlink()

    def leave(at, share):
        if at == name:
            (copy.out / name / "images" / ".00000.safetensors.7.unfinished").write_bytes(b"half")

    assert do(plan, copy, at=leave).made[0] == name
    made = stamps.read(plan.steps[-2], copy)["outputs"]
    assert made == {path: digest for path, digest in made.items() if not path.endswith(".unfinished")} != {}
    assert not list((copy.out / name).rglob(".*"))
    assert do(tiny_plan(copy), copy).made == []


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="holds other things"):
        runner.check_folder(shop_at(tmp_path))
    with pytest.raises(InputError, match="no folder"):
        runner.check_folder(shop_at(tmp_path / "thesis.tex"))


@pytest.mark.parametrize("name", [f"{BASE}/model", f"{BASE}/ledger-pgd-margin-1"])
def test_the_end_of_the_minutes_stops_within_a_step_and_it_goes_on(tmp_path, name):
    shop = shop_at(tmp_path / "out")

    def ring(at, share):
        if at == name and share > 0:
            signal.raise_signal(signal.SIGALRM)

    watch = Stopwatch(60)
    with pytest.raises(Stopped) as stopped, watch:
        do(tiny_plan(shop, rows=("baseline",)), shop, at=ring)
    assert watch.status(stopped.value) == OUT_OF_TIME
    assert runner.states(tiny_plan(shop, rows=("baseline",)), shop, {})[name] is stamps.State.BEGUN
    listener = do(tiny_plan(shop, rows=("baseline",)), shop)
    assert listener.found[name] == "go on"
    assert listener.made[-1] == "report"


def test_a_signal_has_its_own_status():
    for number in (signal.SIGTERM, signal.SIGINT):
        watch = Stopwatch(None)
        with pytest.raises(Stopped) as stopped, watch:
            signal.raise_signal(number)
        assert watch.status(stopped.value) == 128 + number


def test_killed_at_every_step_it_comes_to_the_same_end(tmp_path, finished, count):
    """Kills when a step is begun, within it, and when all but its stamp is there; one of these a step, or all three."""
    nursery = Path(__file__).with_name("nursery.py")
    command = [sys.executable, "-W", "ignore", str(nursery), str(tmp_path / "out"), str(count(1, 3))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["killed"] == outcome["kills"] >= len(ALL)
    assert outcome["last"] == 0
    for name in ("overview.csv", f"{FIXED}/codebook.json", f"{BASE}/model/card.json"):
        assert (tmp_path / "out" / name).read_bytes() == (finished / name).read_bytes()


def test_a_network_without_a_faithful_quick_copy_is_searched_itself(copy, monkeypatch):
    """As MNIST's is: where pooling meets equal pixels, sixteen bits send the gradient another way."""
    tried = []

    def strict(model, *, half, compiled, probe):
        tried.append(half)
        if half:
            raise UnfaithfulCopy("not the model's")
        return model

    monkeypatch.setattr(hearing, "searcher", strict)
    step = next(step for step in tiny_plan(copy).steps if step.name == f"{BASE}/ledger-pgd-ce-1")
    step.judgement = replace(step.judgement, precision="bfloat16")
    remove(step.pieces(copy))
    for _ in range(2):  # begun, and gone on with
        step.run(copy, lambda share, words: None)
    assert tried == [True, False, False]
    assert headers.read(step.ledger(copy))["settings"]["precision"] == "float32"
