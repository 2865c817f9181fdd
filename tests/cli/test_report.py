"""`linocut report` from the command line's side."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from linocut.cli import app

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from report_cases import made_up


@pytest.fixture
def ledger(tmp_path):
    return made_up(tmp_path / "ledger", published={"linf": 5}, worst={"linf": 2}, n=10)


def linocut(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def test_report_says_where_the_page_is(ledger, tmp_path):
    done = linocut("report", ledger, "--out", tmp_path / "out", "--title", "Mine")
    assert done.exit_code == 0
    assert "report.html" in done.output.replace("\n", "")
    assert "<title>Mine</title>" in (tmp_path / "out" / "report.html").read_text()


def test_report_as_json(ledger, tmp_path):
    told = json.loads(linocut("report", ledger, "--out", tmp_path / "out", "--json").output)
    assert Path(told["page"]).name == "report.html"
    assert [Path(table).name for table in told["tables"]] == ["tables.md", "tables.tex", "tables.csv"]
    assert all(Path(path).stat().st_size for path in (told["page"], *told["tables"]))


def test_a_folder_without_a_ledger_is_a_mistake_of_the_user(tmp_path):
    done = linocut("report", tmp_path, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "holds no ledger" in done.output
