"""The two verbs, from the command line's side."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import linocut as package
from linocut.cli import app
from linocut.errors import InputError
from linocut.evaluation.record import Record
from linocut.evaluation.request import device_of
from linocut.models import Architecture, Card, Defended, build, save

STRANGERS = '''
"""Models of a stranger."""
import torch
from torch import nn
from linocut.attacks.pgd import PGD

def linear():
    torch.manual_seed(0)
    net = nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 10))
    return net

def other():
    torch.manual_seed(1)
    return nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 10))

class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = linear()

    def forward(self, images):
        return self.model(images + 0.1 * torch.randn_like(images))

def noisy():
    return Noisy()

def few_levels(images):
    return (images * 3).round() / 3

def through_numpy(images):
    return torch.from_numpy(images.numpy()) * 1.0

def halved(images):
    return images[:, :, ::2, ::2].round()

def attacks():
    return [PGD(name="mine", num_steps=3, any_iterate=True)]

def no_attacks():
    return [3]

class Faulty:
    name = "faulty"
    def run(self, *arguments):
        raise KeyError("a slip of mine")

def faulty_attacks():
    return [Faulty()]

class OnTheGrid(nn.Module):
    def forward(self, images):
        assert torch.equal((images * 255).round() / 255, images), "off the grid"
        return linear()(images)

def on_the_grid():
    return OnTheGrid()

class InPlace(nn.Module):
    def forward(self, images):
        return linear()(images.exp().add_(1).log())

def in_place():
    return InPlace()

class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = linear()
        self.register_buffer("forwards", torch.zeros(1))

    def forward(self, images):
        self.forwards += 1
        return self.model(images)

def counting():
    return Counting()

def prints():
    print("loading my model")
    return linear()

def leaves():
    raise SystemExit(3)

number = 3
'''
QUICK = ["--data", "npz", "--root", "pictures.npz", "--norm", "linf", "--eps", "0.05"]
QUICK += ["-n", "20", "--batch-size", "10", "--device", "cpu"]


@pytest.fixture
def linocut(tmp_path, monkeypatch):
    """linocut(...): the result of a command in a folder that holds a stranger's module."""
    (tmp_path / "strangers.py").write_text(STRANGERS)
    dice = np.random.default_rng(0)
    parts = {"x_train": (50, 8, 8), "y_train": 50, "x_test": (30, 8, 8), "y_test": 30}
    arrays = {name: dice.integers(0, 256 if name[0] == "x" else 10, shape) for name, shape in parts.items()}
    told = {}
    exec(STRANGERS, told)  # most labels are what the linear model says: what is wrong at first is not attacked
    seen = told["linear"]()(torch.from_numpy(arrays["x_test"]).float()[:, None] / 255).argmax(dim=1).numpy()
    arrays["y_test"] = np.where(np.arange(30) % 10, seen, arrays["y_test"])
    np.savez(tmp_path / "pictures.npz", **{name: array.astype(np.uint8) for name, array in arrays.items()})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "strangers", raising=False)
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, list(arguments), catch_exceptions=False)


def test_evaluate_prints_the_table_and_verify_confirms_it(linocut, tmp_path):
    done = linocut("evaluate", "strangers:linear", *QUICK, "--suite", "pgd-ce-1,random-noise", "--out", "ledger")
    assert done.exit_code == 0
    for word in ("clean", "as published", "worst case", "95 %", "zero-gradient", "not applicable"):
        assert word in done.output
    assert Record.read(tmp_path / "ledger").made_with["card"] is None, "a function's model has no card"
    checked = linocut("verify", "ledger", "--json")
    assert checked.exit_code == 0
    outcome = json.loads(checked.output)
    assert outcome["confirmed"] == outcome["claims"] > 15
    foreign = linocut("verify", "ledger", "--model", "strangers:other")
    assert foreign.exit_code == 2
    assert "not the model of this ledger" in foreign.output
    next((tmp_path / "ledger/images/linf.pgd-published").iterdir()).unlink()
    assert linocut("verify", "ledger").exit_code == 1


def test_json_strict_twin_and_preprocessing(linocut):
    command = ["evaluate", "strangers:linear", *QUICK, "--suite", "strangers:attacks", "--json", "--strict"]
    command += ["--preprocess", "strangers:few_levels", "--twin", "strangers:linear"]
    done = linocut(*command, "--out", "ledger")
    told = json.loads(done.output)
    assert done.exit_code == (1 if told["failed"] else 0)
    assert {"clean", "norms", "findings", "settings"} <= set(told)
    worst = told["norms"]["linf"]["worst"]
    assert worst["low"] <= worst["percent"] <= worst["high"]
    assert worst["n"] == 20
    assert len({finding["code"] for finding in told["findings"]}) == 15
    again = linocut(*command, "--out", "ledger")
    assert json.loads(again.output) == told


def test_preprocessing_without_a_gradient_passes_straight(linocut):
    command = ["evaluate", "strangers:linear", *QUICK, "--suite", "random-noise", "--preprocess"]
    for preprocess in ("strangers:few_levels", "strangers:through_numpy"):
        done = linocut(*command, preprocess, "--json", "--out", preprocess.replace(":", "-"))
        assert done.exit_code == 0
        assert "zero-gradient" not in json.loads(done.output)["failed"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--suite", "nonsense"], "no suite or attack 'nonsense'"),
        (["--suite", "strangers:no_attacks"], "must return a list of attacks"),
        (["--suite", "strangers:number"], "is no function"),
        (["--suite", "strangers:gone"], "has no gone"),
        (["--suite", "nowhere:gone"], "nowhere"),
        (["--norm", "l3"], "norm must be"),
        (["--n", "100000"], "n must lie between"),
        (["--preprocess", "strangers:halved"], "identity cannot stand in"),
        (["--precision", "float8"], "precision must be"),
    ],
)
def test_mistakes_are_named(linocut, change, message):
    done = linocut("evaluate", "strangers:linear", *QUICK, "--out", "ledger", *change)
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", " ").split())


def test_a_model_of_colour_images_is_refused_for_grey_ones(linocut, tmp_path):
    colour = Architecture(name="small-net", num_classes=10, in_channels=3)
    save(tmp_path / "colour", Defended(None, build("small-net", 10, 3)), Card(architecture=colour))
    done = linocut("evaluate", "colour", *QUICK, "--out", "ledger")
    assert done.exit_code == 2
    assert "takes images of 3 channels, these have 1" in " ".join(done.output.replace("│", " ").split())


def test_a_changed_setting_is_refused_by_name(linocut):
    command = ["evaluate", "strangers:linear", *QUICK, "--suite", "random-noise", "--out", "ledger"]
    assert linocut(*command).exit_code == 0
    refused = linocut(*command, "--seed", "3")
    assert refused.exit_code == 2
    assert "seed = 0, not 3" in refused.output


def test_autoattack_is_added_to_a_ledger_and_resumed(linocut, tmp_path, monkeypatch):
    pytest.importorskip("pyautoattack")
    from linocut.attacks import autoattack
    from linocut.attacks.autoattack import AutoAttack

    monkeypatch.setattr(autoattack, "PARTS", ("apgd-ce", "apgd-t"))  # 5,000 queries of Square take too long here
    command = ["evaluate", "strangers:linear", *QUICK, "--suite", "random-noise", "--out", "ledger"]
    assert linocut(*command).exit_code == 0
    before = {row.key: row for row in Record.read(tmp_path / "ledger").rows}
    runs, own = [], AutoAttack.run

    def stopped(self, *arguments):
        if len(runs) == 3:
            raise KeyboardInterrupt
        runs.append(self.part)
        return own(self, *arguments)

    monkeypatch.setattr(AutoAttack, "run", stopped)
    interrupted = linocut(*command, "--attack", "autoattack")
    assert interrupted.exit_code != 0
    runs.clear()
    monkeypatch.setattr(AutoAttack, "run", lambda self, *a: runs.append(self.part) or own(self, *a))
    assert linocut(*command, "--attack", "autoattack").exit_code == 0
    assert "apgd-ce" not in runs, "both batches of the first part were done before the interruption"
    record = Record.read(tmp_path / "ledger")
    assert {row.key: row for row in record.rows if row.key in before} == before
    assert record.ran("linf/autoattack-apgd-ce")
    assert record.ran("linf/autoattack-apgd-t")
    assert linocut("verify", "ledger").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["strangers:on_the_grid"], "in forward: AssertionError: off the grid"),
        (["strangers:in_place"], "strangers:in_place fails in the backward: RuntimeError"),
        (["strangers:linear", "--twin", "strangers:in_place"], "strangers:in_place fails in the backward"),
        (["strangers:leaves"], "SystemExit: 3"),
        (["strangers:linear", "--suite", "strangers:faulty_attacks"], "in run: KeyError: 'a slip of mine'"),
    ],
)
def test_a_fault_in_a_strangers_code_is_told_in_a_line(linocut, arguments, message):
    done = linocut("evaluate", *arguments, *QUICK, "--out", "ledger")
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


def test_a_fault_of_ours_is_not_hidden(linocut, monkeypatch):
    monkeypatch.setattr("linocut.evaluation.hearing.plan", int)  # fails, and no line of a stranger is running
    with pytest.raises(TypeError):
        linocut("evaluate", "strangers:linear", *QUICK, "--out", "ledger")


def test_a_model_that_counts_its_forwards_is_known_again(linocut):
    assert linocut("evaluate", "strangers:counting", *QUICK, "--suite", "random-noise", "--out", "l").exit_code == 0
    assert linocut("verify", "l").exit_code == 0
    done = linocut("verify", "l", "--model", "strangers:other")
    assert done.exit_code == 2
    assert "give --model the one that was judged" in done.output


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["entries"]["linf/random-noise"].pop("eps"),
        lambda header: header["settings"].update(radii="0.05"),
        lambda header: header["settings"].update(draws="one"),
        lambda header: header["settings"].update(n=[]),
        lambda header: header["settings"].pop("model_hash"),
        lambda header: header["settings"].update(radii={"l3": 0.05}),
        lambda header: header["entries"].update(clean=[]),
    ],
)
def test_a_damaged_header_is_called_so(linocut, tmp_path, change):
    assert linocut("evaluate", "strangers:linear", *QUICK, "--suite", "random-noise", "--out", "l").exit_code == 0
    header = json.loads((tmp_path / "l/header.json").read_text())
    change(header)
    (tmp_path / "l/header.json").write_text(json.dumps(header))
    done = linocut("verify", "l")
    assert done.exit_code == 2
    assert "header.json is damaged" in done.output


def test_verify_without_a_ledger(linocut):
    done = linocut("verify", "nothing")
    assert done.exit_code == 2
    assert "holds no ledger" in done.output


def test_what_a_model_prints_is_no_part_of_the_json(linocut):
    """And a radius may be a fraction."""
    done = linocut(
        "evaluate", "strangers:prints", *QUICK, "--eps", "8/255", "--suite", "random-noise", "--json", "--out", "l"
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["norms"]["linf"]["eps"] == pytest.approx(8 / 255)
    assert "loading my model" in done.stderr


@pytest.mark.full
def test_a_randomised_model_is_judged_by_its_expectation(linocut, tmp_path):
    command = ["evaluate", "strangers:noisy", *QUICK, "--suite", "random-noise", "--strict", "--json", "-n", "4"]
    done = linocut(*command, "--out", "ledger")
    assert done.exit_code == 1
    assert "randomness" in json.loads(done.output)["failed"]
    assert json.loads((tmp_path / "ledger" / "header.json").read_text())["settings"]["draws"] == 20
    assert linocut("verify", "ledger").exit_code == 0


def test_bfloat16_searches_and_float32_judges(linocut):
    command = ["evaluate", "strangers:linear", *QUICK, "--suite", "pgd-ce-1", "--precision", "bfloat16"]
    assert linocut(*command, "--out", "ledger").exit_code == 0
    assert linocut("verify", "ledger").exit_code == 0


def test_two_ranks_make_the_same_ledger_as_one_process(linocut, tmp_path):
    command = ["evaluate", "strangers:linear", *QUICK, "--suite", "random-noise"]
    assert linocut(*command, "--out", "one").exit_code == 0
    ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | {"PYTHONPATH": str(Path(package.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*ranks, "-m", "linocut", *command, "--out", "two"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("zero-gradient") == 1  # rank 0 alone speaks
    one, two = (
        [replace(row, milliseconds=0.0) for row in Record.read(tmp_path / name).rows] for name in ("one", "two")
    )
    assert one == two
    assert not list((tmp_path / "two" / "parts").glob("*.jsonl"))
    for path in (tmp_path / "one" / "images").rglob("*.safetensors"):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()


def test_the_header_asks_for_the_same_from_any_folder(linocut, tmp_path, monkeypatch):
    asked = ["evaluate", "strangers:linear", *QUICK, "--suite", "random-noise", "--seed", "3"]
    assert linocut(*asked, "--out", "ledger").exit_code == 0
    first = Record.read(tmp_path / "ledger")
    repeat = first.made_with["repeat"]
    assert repeat[-2:] == ["--root", str(tmp_path / "pictures.npz")], "a path from the root"
    assert "--out" not in repeat
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert linocut(*repeat, "--out", "repeated").exit_code == 0
    again = Record.read(tmp_path / "elsewhere/repeated")
    assert again.settings == first.settings
    assert again.worst("linf") == first.worst("linf")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cuda:99", "cuda:99 was asked for, and torch sees"),
        ("gpu", "no device"),
        ("meta", "meta cannot be used here .*: use --device cpu"),
    ],
)
def test_a_device_that_is_not_there_is_refused(name, told):
    with pytest.raises(InputError, match=told):
        device_of(name)


def test_training_images_that_cannot_be_read_are_told(linocut, tmp_path, caplog):
    """Else the check for a leak would be left out in silence."""
    arrays = dict(np.load(tmp_path / "pictures.npz"))
    arrays["x_train"] = arrays["x_train"].astype(np.float32)
    np.savez(tmp_path / "pictures.npz", **arrays)
    done = linocut("evaluate", "strangers:linear", *QUICK, "--suite", "apgd-ce", "--out", "ledger", "--json")
    assert done.exit_code == 0
    (leak,) = (finding for finding in json.loads(done.stdout)["findings"] if finding["code"] == "leak")
    assert leak["status"] == "not applicable"
    assert any("whether judged images were trained on is not asked" in told for told in caplog.messages)
