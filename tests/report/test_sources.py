"""What is taken for a ledger, and what is refused."""

import json
import sys

import pytest
from report_cases import made_up, run_ledger

from linocut.errors import InputError
from linocut.report import write
from linocut.report.sources import read_all

COUNTS = {"published": {"linf": 5}, "worst": {"linf": 5}, "n": 10}


def test_no_ledger(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no ledger"):
        write([tmp_path / "empty"], tmp_path / "out")
    with pytest.raises(InputError, match="is no folder"):
        write([tmp_path / "absent"], tmp_path / "out")
    with pytest.raises(InputError, match="at least one"):
        write([], tmp_path / "out")


def test_ledgers_below_a_folder_and_twice_the_same(tmp_path):
    made_up(tmp_path / "all" / "b", **COUNTS)
    made_up(tmp_path / "all" / "deep" / "a", **COUNTS)
    found = read_all([tmp_path / "all", tmp_path / "all" / "b"])
    assert [subject.folder.name for subject in found] == ["b", "a"]
    assert [subject.name for subject in found] == ["m (b)", "m (a)"], "the same model twice, told apart"


def with_seed(ledger, seed):
    header = json.loads((ledger / "header.json").read_text())
    header["made_with"]["card"] = {"recipe": {"recipe": "m/row", "seed": seed}}
    (ledger / "header.json").write_text(json.dumps(header))


def test_seeds_tell_networks_of_one_recipe_apart(tmp_path):
    for seed in (0, 1):
        for suite in ("paper", "strong"):
            with_seed(made_up(tmp_path / f"seed-{seed}" / f"ledger-{suite}", **COUNTS), seed)
    names = [subject.name for subject in read_all([tmp_path])]
    assert names == [f"m/row, seed {seed} ({suite})" for seed in (0, 1) for suite in ("paper", "strong")]


def test_the_stamps_beside_ledgers_are_passed_over(tmp_path):
    ledger = made_up(tmp_path / "ledger-paper", **COUNTS)
    (stamp := tmp_path / "ledger-paper.stamp.json").write_text("{}")
    assert [subject.folder for subject in read_all([ledger, stamp])] == [ledger]
    with pytest.raises(InputError, match="is no folder"):
        read_all([stamp])


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["settings"].update(radii={"linf": "0.3"}),
        lambda header: header["settings"].update(radii={"l3": 0.3}),
        lambda header: header["settings"].update(radii=[]),
        lambda header: header["settings"].update(radii={"linf": float("nan")}),
        lambda header: header["settings"].pop("classes"),
        lambda header: header["settings"].update(suite=3),
        lambda header: header["settings"].update(n=None),
        lambda header: header.update(settings=[]),
        lambda header: header.update(entries=[]),
        lambda header: header["entries"].pop("clean"),
        lambda header: header["entries"].pop("linf/pgd-margin"),
        lambda header: header["entries"]["clean"].pop("column"),
        lambda header: header.update(made_with=None),
    ],
)
def test_a_damaged_header_is_refused(tmp_path, change):
    ledger = made_up(tmp_path / "x", **COUNTS)
    header = json.loads((ledger / "header.json").read_text())
    change(header)
    (ledger / "header.json").write_text(json.dumps(header))
    with pytest.raises(InputError, match="damaged"):
        read_all([ledger])


@pytest.mark.parametrize("kept", [0.2, 0.99])
def test_rows_that_lost_their_end_are_refused(tmp_path, kept):
    rows = made_up(tmp_path / "x", **COUNTS) / "rows.jsonl"
    text = rows.read_text()
    rows.write_text(text[: int(len(text) * kept)])
    with pytest.warns(UserWarning, match="cut short"), pytest.raises(InputError, match="damaged"):
        read_all([tmp_path / "x"])


def test_a_damaged_figure_is_refused(copied, tmp_path):
    ledger = copied("plain")
    next((ledger / "figures" / "clean").iterdir()).write_bytes(b"nothing")
    with pytest.raises(InputError, match="damaged"):
        write([ledger], tmp_path / "out")


def test_a_folder_that_cannot_be_written(tmp_path):
    ledger = made_up(tmp_path / "x", **COUNTS)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="choose another folder"):
        write([ledger], tmp_path / "file")


def test_without_jinja_the_user_is_told_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=r"linocut\[report\]"):
        write([made_up(tmp_path / "x", **COUNTS)], tmp_path / "out")


def test_what_a_killed_process_left_beside_figures_is_passed_over(tmp_path):
    ledger = run_ledger(tmp_path / "ledger", defended=True, norms=("linf",), name="m")
    written = write([ledger], tmp_path / "before")
    whole = ledger / "figures" / "clean" / "00000.safetensors"
    whole.with_name(f".{whole.name}.4711.unfinished").write_bytes(whole.read_bytes()[:40])
    assert write([ledger], tmp_path / "after").read_text() == written.read_text()
