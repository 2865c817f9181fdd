"""Results of several folders put together."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from linocut.cli import app
from linocut.errors import InputError
from linocut.models.seal import sealed
from linocut.recipes.publish.joining import join

from .conftest import BASE, FIXED
from .test_publication import catalogue, contents


@pytest.fixture
def without_base(published, tmp_path):
    """The results as if the baseline had been but a twin, and its ledgers open."""
    results = tmp_path / "without"
    shutil.copytree(published, results)
    held = catalogue(results)
    del held["works"][BASE]
    held["open"] = {BASE: {"steps": [f"{BASE}/ledger-random-noise"], "seconds": None}}
    (results / "published.json").write_bytes(sealed(held))
    for ledger in (results / BASE).glob("ledger-*"):
        shutil.rmtree(ledger)
    return results


@pytest.fixture
def of_mnist(published, tmp_path):
    """The results as if digits were called MNIST."""
    results = tmp_path / "mnist-results"
    shutil.copytree(published, results)
    (results / "digits").rename(results / "mnist")
    for name in ("published.json", "overview.csv"):
        path = results / name
        path.write_text(path.read_text().replace("digits/", "mnist/").replace('"digits": {', '"mnist": {'))
    held = json.loads((results / "published.json").read_text())
    held.pop("sha256")
    (results / "published.json").write_bytes(sealed(held))
    table = (results / "overview.csv").read_text()
    (results / "overview.csv").write_text(
        "".join(f"{line}\n".replace("digits,", "mnist,", 1) for line in table.splitlines())
    )
    return results


def test_an_empty_folder_becomes_the_other(published, tmp_path):
    done = join(published, tmp_path / "results")
    assert done.joined == [FIXED, BASE]
    assert contents(tmp_path / "results") == contents(published)


def test_what_killed_processes_left_unfinished_is_not_joined(published, tmp_path):
    other, results = tmp_path / "other", tmp_path / "results"
    shutil.copytree(published, other)
    for name in ("digits/report", f"{BASE}/ledger-random-noise", f"{BASE}/ledger-random-noise/images", f"{BASE}/model"):
        (other / name / ".file.json.7.unfinished").write_bytes(b"\xff")
    join(other, results)
    assert contents(results) == contents(published)


def test_a_report_that_was_half_copied_is_copied_whole(published, tmp_path):
    results = tmp_path / "results"
    join(published, results)
    (results / "digits" / "report" / "tables.md").unlink()
    join(published, results)
    assert contents(results) == contents(published)


def test_a_row_whose_folder_was_removed_is_replaced(published, tmp_path):
    results = tmp_path / "results"
    join(published, results)
    held = catalogue(results)
    held["works"][FIXED]["hashes"] |= {f"{FIXED}/ledger-random-noise": "judged before"}
    (results / "published.json").write_bytes(sealed(held))
    with pytest.raises(InputError, match="remove it there to replace it"):
        join(published, results)
    shutil.rmtree(results / FIXED)
    done = join(published, results)
    assert (done.joined, done.unchanged) == ([FIXED], [BASE])
    assert catalogue(results)["works"] == catalogue(published)["works"]
    assert contents(results / "digits") == contents(published / "digits")


def test_twice_is_once(published, tmp_path):
    join(published, tmp_path / "results")
    before = contents(tmp_path / "results")
    done = join(published, tmp_path / "results")
    assert (done.joined, done.unchanged) == ([], [FIXED, BASE])
    assert contents(tmp_path / "results") == before


def test_rows_join_what_stands_on_the_same_network(without_base, published):
    untouched = contents(without_base / FIXED)
    done = join(published, without_base)
    assert (done.joined, done.unchanged, done.open) == ([BASE], [FIXED], {})
    assert contents(without_base / FIXED) == untouched
    for name in ("overview.md", "overview.csv", "digits/report/report.html"):
        assert (without_base / name).read_bytes() == (published / name).read_bytes(), name


def test_a_report_over_both_is_written_anew(without_base, published, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(published, results)
    lost = catalogue(results)
    del lost["works"][FIXED]
    (results / "published.json").write_bytes(sealed(lost))
    shutil.rmtree(results / FIXED)
    join(without_base, results)
    page = (results / "digits" / "report" / "report.html").read_text(encoding="utf-8")
    assert "fixed-pretrained" in page
    assert "baseline" in page
    assert str(tmp_path) not in page
    assert sorted((results / "overview.csv").read_text()) == sorted((published / "overview.csv").read_text())


def test_another_data_set_leaves_the_first_as_it_is(of_mnist, published, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(published, results)
    join(of_mnist, results)
    assert contents(results / "digits") == contents(published / "digits")
    assert set(catalogue(results)["data"]) == {"digits", "mnist"}
    sets = {line.split(",")[0] for line in (results / "overview.csv").read_text().splitlines()[1:]}
    assert sets == {"digits", "mnist"}
    ledger = results / "mnist" / BASE.removeprefix("digits/") / "ledger-random-noise"
    assert CliRunner().invoke(app, ["verify", str(ledger), "--device", "cpu"]).exit_code == 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda held: held["data"]["digits"].update(hash="0f"), "digits was published with hash"),
        (lambda held: held.update(images=7), "--images 5, not 7"),
        (lambda held: held["works"][FIXED]["hashes"].update({f"{BASE}/model": "another"}), "is another one"),
        (lambda held: held.update(format="linocut-published-0"), "another version"),
        (lambda held: held.update(more=1), "another version"),
        (lambda held: held["works"].update({"../digits/seed-0": held["works"][FIXED]}), "no place among results"),
        (lambda held: held["works"][FIXED].update(ledgers=["../ledger"]), "no place among results"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_changed(change, told, published, without_base, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(without_base, other)
    held = catalogue(other)
    change(held)
    (other / "published.json").write_bytes(sealed(held))
    results = tmp_path / "results"
    shutil.copytree(published, results)
    before = contents(results)
    with pytest.raises(InputError, match=told):
        join(other, results)
    assert contents(results) == before


def test_a_folder_does_not_join_itself(published):
    with pytest.raises(InputError, match="with itself"):
        join(published, published)


def test_the_verb_says_what_was_added(published, tmp_path):
    done = CliRunner().invoke(app, ["publish", str(published), str(tmp_path / "results")])
    assert done.exit_code == 0, done.output
    assert f"{BASE}: added" in done.stdout


def test_a_network_on_which_a_row_stands_is_not_replaced(without_base, published, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(published, other)
    held = catalogue(other)
    del held["works"][FIXED]
    held["works"][BASE]["hashes"][f"{BASE}/model"] = "another"
    (other / "published.json").write_bytes(sealed(held))
    before = contents(without_base)
    with pytest.raises(InputError, match=f"on which {FIXED} stands"):
        join(other, without_base)
    assert contents(without_base) == before


@pytest.mark.parametrize("stop_at", [FIXED, BASE, "overview and report"])
def test_a_join_that_was_stopped_is_gone_on_with(stop_at, published, tmp_path):
    def stop(text):
        if text == stop_at:
            raise KeyboardInterrupt

    results = tmp_path / "results"
    with pytest.raises(KeyboardInterrupt):
        join(published, results, tell=stop)
    join(published, results)
    assert contents(results) == contents(published)


@pytest.mark.parametrize("stop_at", [BASE, "overview and report"])
def test_a_join_that_was_stopped_leaves_no_report_of_fewer_rows(stop_at, without_base, published):
    def stop(text):
        if text == stop_at:
            raise KeyboardInterrupt

    (without_base / "digits" / "report" / "report.html").write_text("of one row")
    with pytest.raises(KeyboardInterrupt):
        join(published, without_base, tell=stop)
    join(published, without_base)
    name = "digits/report/report.html"
    assert (without_base / name).read_bytes() == (published / name).read_bytes()


@pytest.mark.parametrize("spoil", ["damaged", "missing", "no natural images"])
def test_what_is_not_whole_is_refused_before_anything_changes(spoil, published, without_base, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(published, other)
    ledger = other / BASE / "ledger-random-noise"
    if spoil == "damaged":
        rows = ledger / "rows.safetensors.xz"
        rows.write_bytes(rows.read_bytes()[:-40])
    elif spoil == "missing":
        shutil.rmtree(ledger)
    else:
        (other / "digits" / "natural.safetensors.xz").unlink()
    before = contents(without_base)
    with pytest.raises(InputError):
        join(other, without_base)
    assert contents(without_base) == before


def test_a_join_that_adds_nothing_leaves_the_report_alone(without_base, published, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(published, results)
    (without_base / "digits" / "report" / "report.html").write_text("of one row")
    assert join(without_base, results).joined == []
    assert contents(results) == contents(published)


def test_seeds_of_different_trainings_are_not_averaged(published, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(published, other)
    second = BASE.replace("seed-0", "seed-1")
    (other / BASE).rename(other / second)
    card = other / second / "model" / "card.json"
    held = json.loads(card.read_text())
    held["recipe"] |= {"seed": 1, "epochs": 99}
    held.pop("sha256", None)
    card.write_bytes(sealed(held))
    told = catalogue(other)
    told["works"] = {second: told["works"][BASE]}
    (other / "published.json").write_bytes(sealed(told))
    with pytest.raises(InputError, match=r"trained otherwise than .* \(epochs\)"):
        join(other, published)
