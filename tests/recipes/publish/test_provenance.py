"""Every number's ledger can be found, checked and repeated by what the page says of it."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from linocut.cli import app
from linocut.evaluation import packing
from linocut.recipes.publish import parcels, provenance
from linocut.recipes.publish.joining import join

from .conftest import BASE, FIXED, put
from .test_published import LEDGERS


def commands(results):
    """The commands of the page, as words without `linocut`."""
    page = (results / provenance.NAME).read_text()
    blocks = re.findall(r"^```\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


def test_every_link_leads_somewhere(published):
    for name in ("overview.md", provenance.NAME):
        links = re.findall(r"\]\(([^)]+)\)", (published / name).read_text())
        assert links
        assert [link for link in links if not (published / link).is_file()] == []


def test_each_ledger_is_verified_by_its_command(moved, monkeypatch):
    monkeypatch.chdir(moved)
    checks = [words for words in commands(moved) if words[0] == "verify"]
    assert sorted(place for _, place in checks) == sorted(LEDGERS)
    for words in checks:
        assert CliRunner().invoke(app, [*words, "--device", "cpu"]).exit_code == 0


def test_the_log_of_each_ledger_is_quoted(published):
    page = (published / provenance.NAME).read_text()
    for ledger in LEDGERS:
        log = json.loads((published / ledger / "verification.json").read_text())
        line = next(line for line in page.splitlines() if f"({ledger}/header.json)" in line)
        assert f"[{log['confirmed']} of {log['claims']}]({ledger}/verification.json)" in line
        assert line.endswith(f"| {log['packed']['claims']} |")


def test_an_evaluation_is_repeated_by_its_command(moved, tmp_path, monkeypatch):
    monkeypatch.chdir(moved)
    words = next(words for words in commands(moved) if words[0] == "evaluate" and "AGAIN/ledger-random-noise" in words)
    again = [str(tmp_path / word) if word.startswith("AGAIN") else word for word in words]
    done = CliRunner().invoke(app, again)
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(app, ["verify", again[-1], "--model", words[1]]).exit_code == 0


def test_only_a_network_that_was_trained_has_a_training(published):
    trainings = [words[words.index("--recipe") + 1] for words in commands(published) if words[0] == "train"]
    assert trainings == [f"{BASE}/config.json"]
    assert (
        "the network of smoke/baseline, with the transform put before it" in (published / provenance.NAME).read_text()
    )


def test_each_seed_has_its_numbers_and_a_report_shows_them(moved, tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    monkeypatch.chdir(moved)
    sections = (moved / provenance.NAME).read_text().split("\n## ")[1:]
    reports = [words for words in commands(moved) if words[0] == "report"]
    assert len(sections) == len(reports) == 2
    for section, words in zip(sections, reports, strict=True):
        clean = re.search(r"clean \*\*([\d.]+)\*\*, L∞ .*worst \*\*([\d.]+)\*\*", section).group(1)
        page = str(tmp_path / words[1].replace("/", "-"))
        assert CliRunner().invoke(app, [*words[:-1], page]).exit_code == 0
        assert clean in (Path(page) / "report.html").read_text()


def test_without_weights_nothing_is_promised_but_the_log_and_training_anew(reproduced, tmp_path, monkeypatch):
    for room in (packing, parcels):
        monkeypatch.setattr(room, "MOST_WEIGHTS", 50_000)
    shutil.copytree(reproduced, tmp_path / "out")
    results = tmp_path / "results"
    put(tmp_path / "out", results)
    found = commands(results)
    assert {words[0] for words in found} == {"report", "train", "evaluate"}
    judged = [words for words in found if words[0] == "evaluate"]
    assert [words[1] for words in judged] == ["RUN/model"] * 2  # the baseline's; training does not make the other row
    assert (results / provenance.NAME).read_text().count("too large to be here; the logs") == 2


def test_the_twin_of_a_network_made_anew_is_another_one():
    words = ["evaluate", "a/model", "--data", "d", "--twin", "b/model"]
    assert provenance._of_network_made_anew(words) == ["evaluate", "RUN/model", "--data", "d", "--twin", "TWIN/model"]


@pytest.mark.parametrize("content", [None, "{", "[]", '{"confirmed": 3}'])
def test_a_log_that_is_missing_or_damaged_is_not_quoted(content, published, moved, tmp_path):
    log = moved / FIXED / "ledger-random-noise" / "verification.json"
    log.unlink()
    if content is not None:
        log.write_text(content)
    join(moved, tmp_path / "joined")
    assert (tmp_path / "joined" / provenance.NAME).read_text().count("not recorded | not recorded |") == 1


def test_links_lead_on_where_a_row_has_odd_characters():
    assert provenance._link("x", "d/baseline+milestones=[1, 2]/y") == "[x](d/baseline+milestones=%5B1,%202%5D/y)"


@pytest.mark.parametrize("name", ["overview.md", provenance.NAME])
def test_no_page_names_a_folder_of_the_machine(name, published, reproduced):
    text = (published / name).read_text()
    assert str(reproduced.parent) not in text
    assert str(published.parent) not in text
