import json
import os
import sys

import pytest
from typer.testing import CliRunner

from linocut.cli import app
from linocut.theory import findings


def test_theory_prints_every_finding_as_json():
    done = CliRunner().invoke(app, ["theory", "--json"])
    assert done.exit_code == 0
    names = [row["name"] for row in json.loads(done.stdout)]
    assert names == [
        "theorem 1",
        "theorem 1, limit",
        "theorem 1, inside 0..255",
        "theorem 2",
        "theorem 2, limit",
        "certificate, adaptive",
    ]


def test_theory_exits_with_1_when_something_does_not_hold(monkeypatch, tmp_path):
    broken = findings.Finding(name="theorem 1", holds=False, says="x", how="y")
    monkeypatch.setattr(findings, "first_theorem", lambda: [broken])
    monkeypatch.setattr(findings, "second_theorem", lambda: [])
    done = CliRunner().invoke(app, ["theory", "--figures", str(tmp_path)])
    assert done.exit_code == 1
    assert "DOES NOT HOLD" in done.stdout
    assert (tmp_path / "proof.png").exists()


@pytest.mark.parametrize("place", ["file", "file/below", "read-only", "no matplotlib"])
def test_pictures_that_cannot_be_drawn_are_refused_before_any_check(monkeypatch, tmp_path, place):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(findings, "first_theorem", None)  # to call it is an error of another kind
    (tmp_path / "file").write_text("kept")
    (tmp_path / "read-only").mkdir()
    if place == "read-only":
        monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    if place == "no matplotlib":
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = CliRunner().invoke(app, ["theory", "--figures", str(tmp_path / place)])
    assert done.exit_code == 2
    assert ("figures need matplotlib" if place == "no matplotlib" else "another folder") in done.stderr
    assert (tmp_path / "file").read_text() == "kept"


def test_results_that_cannot_be_drawn_are_refused_before_any_check(monkeypatch, tmp_path):
    monkeypatch.setattr(findings, "first_theorem", None)  # to call it is an error of another kind
    (tmp_path / "other.json").write_text("{}")
    done = CliRunner().invoke(app, ["theory", "--results", str(tmp_path / "other.json"), "--figures", str(tmp_path)])
    assert done.exit_code == 2
    assert "wanted the JSON file that benchmarks/certified.py wrote" in done.stderr
