"""Publishing what is finished, again, and from several folders."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from linocut.cli import app
from linocut.errors import InputError
from linocut.models.seal import sealed, unsealed
from linocut.recipes.publish import parcels
from linocut.recipes.publish.publication import publish
from linocut.recipes.reproduce.reporting import PAGES

from .conftest import BASE, CPU, FIXED, KEPT, put

SECOND = f"{BASE}/ledger-random-noise"


@pytest.fixture
def half(reproduced, tmp_path):
    """The reproduction as if it had been stopped within the last ledger, with estimates in its plan."""
    out = tmp_path / "half"
    shutil.copytree(reproduced, out)
    stamp = out / f"{SECOND}.stamp.json"
    stamp.write_bytes(sealed({**unsealed(stamp.read_bytes(), "stamp"), "outputs": None}))
    plan = json.loads((out / "plan.json").read_text())
    for step in plan["steps"]:
        step["seconds"] = 7.5
    (out / "plan.json").write_text(json.dumps(plan))
    return out


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def catalogue(results):
    return unsealed((results / "published.json").read_bytes(), "published.json")


def test_twice_is_once(published, reproduced, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(published, results)
    done = put(reproduced, results)
    assert done.verified == {}
    assert done.unchanged == [FIXED, BASE]
    assert contents(results) == contents(published)


def test_of_a_large_network_the_card_alone_is_published(reproduced, tmp_path, monkeypatch):
    monkeypatch.setattr(parcels, "MOST_WEIGHTS", 50_000)
    put(reproduced, tmp_path / "results")
    assert [path.name for path in (tmp_path / "results" / BASE / "model").iterdir()] == ["card.json"]
    assert (tmp_path / "results" / "overview.csv").is_file()
    ledger = tmp_path / "results" / BASE / "ledger-pgd-margin-1"
    assert json.loads((ledger / "verification.json").read_text())["failures"] == []
    here = CliRunner().invoke(app, ["verify", str(ledger)])
    assert here.exit_code == 2
    assert "weights" in here.output
    named = CliRunner().invoke(app, ["verify", str(ledger), "--model", str(reproduced / BASE / "model")])
    assert named.exit_code == 0


def test_what_is_not_finished_is_named_and_added_later(half, reproduced, published, tmp_path):
    results = tmp_path / "results"
    first = put(half, results)
    assert {ledger.rpartition("/")[0] for ledger in first.verified} == {FIXED}
    assert first.open == {BASE: {"steps": [SECOND], "seconds": 7.5}}
    assert catalogue(results)["open"] == first.open
    assert (results / BASE / "model" / "card.json").is_file(), "the twin of what is published"
    assert not (results / SECOND).exists()
    assert "baseline" not in (results / "overview.csv").read_text()
    page = (results / "digits" / "report" / "report.html").read_text(encoding="utf-8")
    assert "<h1>Results on digits</h1>" in page
    untouched = contents(results / FIXED)
    second = put(reproduced, results)
    assert {ledger.rpartition("/")[0] for ledger in second.verified} == {BASE}
    assert second.unchanged == [FIXED]
    assert second.open == catalogue(results)["open"] == {}
    assert contents(results / FIXED) == untouched
    assert (results / "overview.md").read_bytes() == (published / "overview.md").read_bytes()


def test_a_damaged_ledger_is_open(reproduced, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(reproduced, out)
    rows = out / SECOND / "rows.jsonl"
    rows.write_bytes(rows.read_bytes()[:-1])
    assert list(put(out, tmp_path / "results").open) == [BASE]


def test_a_stopped_publication_is_gone_on_with(reproduced, published, tmp_path):
    results = tmp_path / "results"

    def stop(text):
        if text == SECOND:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(reproduced, results, images=KEPT, device=CPU, tell=stop)
    done = put(reproduced, results)
    assert {ledger.rpartition("/")[0] for ledger in done.verified} == {BASE}
    assert contents(results).keys() == contents(published).keys()


def test_what_a_killed_publication_left_unfinished_is_passed_over(reproduced, published, tmp_path):
    results = tmp_path / "results"
    left = results / ".published.json.7.unfinished"
    results.mkdir()
    left.write_bytes(b"{")
    put(reproduced, results)
    report = results / "digits" / "report"
    (report / ".report.html.7.unfinished").write_bytes(b"\xff")
    put(reproduced, results)
    left.unlink()
    assert sorted(path.name for path in report.iterdir()) == [".report.html.7.unfinished", *PAGES]
    (report / ".report.html.7.unfinished").unlink()
    assert contents(results).keys() == contents(published).keys()


def test_a_report_has_the_pages_that_are_published(reproduced):
    assert sorted(path.name for path in (reproduced / "report").iterdir()) == sorted(PAGES)


def test_another_folder_joins_only_with_the_same_data(published, reproduced, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(published, results)
    held = catalogue(results)
    del held["works"][BASE]
    for name, other, told in (("values an image", 256, "values an image 256"), ("hash", "0f", "hash 0f")):
        changed = {**held, "data": {"digits": {**held["data"]["digits"], name: other}}}
        (results / "published.json").write_bytes(sealed(changed))
        before = contents(results)
        with pytest.raises(InputError, match=f"digits was published with {told}"):
            put(reproduced, results)
        assert contents(results) == before


def test_a_network_on_which_something_stands_is_not_replaced(published, reproduced, half, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(published, results)
    held = catalogue(results)
    del held["works"][FIXED]
    held["works"][BASE]["hashes"][f"{BASE}/model"] = "another"
    (results / "published.json").write_bytes(sealed(held))
    before = contents(results)
    with pytest.raises(InputError, match=f"on which {BASE} stands"):
        put(half, results)  # where the baseline is but a twin
    assert contents(results) == before
    assert {ledger.rpartition("/")[0] for ledger in put(reproduced, results).verified} == {FIXED, BASE}


def test_two_data_sets_lie_side_by_side(published, reproduced, tmp_path):
    results, out = tmp_path / "results", tmp_path / "out"
    shutil.copytree(published, results)
    shutil.copytree(reproduced, out)
    (out / "digits").rename(out / "mnist")  # digits stand in for it
    (out / "report.stamp.json").unlink()
    for path in out.rglob("*.stamp.json"):
        content = json.loads(path.read_text().replace("digits/", "mnist/"))
        path.write_bytes(sealed({name: value for name, value in content.items() if name != "sha256"}))
    (out / "plan.json").write_text((out / "plan.json").read_text().replace("digits/", "mnist/"))
    done = put(out, results)
    assert {ledger.split("/")[0] for ledger in done.verified} == {"mnist"}
    assert set(catalogue(results)["data"]) == {"digits", "mnist"}
    table = (results / "overview.csv").read_text()
    assert "\nmnist,baseline,digits," in table
    assert "\ndigits,baseline,digits," in table
    assert contents(results / "digits") == contents(published / "digits")


def test_folders_that_will_not_do_are_refused(reproduced, published, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="holds other things"):
        put(reproduced, tmp_path)
    with pytest.raises(InputError, match="no folder"):
        put(reproduced, tmp_path / "thesis.tex")
    with pytest.raises(InputError, match="own folder"):
        put(reproduced, reproduced / "results")
    with pytest.raises(InputError, match="holds no reproduction"):
        put(tmp_path / "nothing", tmp_path / "results")
    with pytest.raises(InputError, match=f"--images {KEPT}, not 7"):
        put(reproduced, published, images=7)
    with pytest.raises(InputError, match="at least 1"):
        put(reproduced, tmp_path / "results", images=0)
    assert not (tmp_path / "results").exists()


def test_nothing_finished_is_nothing_to_publish(half, tmp_path):
    for stamp in half.rglob("ledger-*.stamp.json"):
        stamp.unlink()
    with pytest.raises(InputError, match="is finished yet"):
        put(half, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_the_verb_prints_what_it_did(half, tmp_path):
    arguments = ["publish", str(half), str(tmp_path / "results"), "--images", str(KEPT), "--device", "cpu"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert f"{FIXED}/ledger-random-noise: " in done.stdout
    assert f"{BASE}: not finished" in done.stdout
    again = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert again["unchanged"] == [FIXED]
    assert again["failures"] == 0
