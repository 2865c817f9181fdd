"""What lies in a folder of results, and that a stranger can verify it anywhere."""

import json
import lzma
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from linocut.cli import app
from linocut.errors import InputError
from linocut.evaluation import columns
from linocut.evaluation import header as headers
from linocut.evaluation import ledger as ledgers
from linocut.evaluation.pictures import Pictures
from linocut.evaluation.record import Record
from linocut.evaluation.verify import replay
from linocut.models.seal import unsealed
from linocut.report import write

from .conftest import BASE, FIXED, KEPT

FIRST, SECOND = "ledger-pgd-margin-1", "ledger-random-noise"
LEDGERS = [f"{place}/{name}" for place in (BASE, FIXED) for name in (FIRST, SECOND)]


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_folder_holds_what_a_stranger_needs(published):
    for name in (
        "overview.md",
        "overview.csv",
        "overview.svg",
        "digits/report/report.html",
        "digits/report/tables.tex",
        "published.json",
    ):
        assert (published / name).is_file()
    assert (published / "digits" / "natural.safetensors.xz").is_file()
    for name in ("config.json", "log.jsonl", "model/card.json"):
        assert (published / BASE / name).is_file()
    assert (published / FIXED / "codebook.json").is_file()
    for ledger in LEDGERS:
        held = {path.name for path in (published / ledger).iterdir()}
        assert held == {"header.json", "rows.safetensors.xz", "images", "figures", "verification.json"}


@pytest.mark.parametrize("ledger", LEDGERS)
def test_a_ledger_is_confirmed_elsewhere_and_says_what_it_left_out(moved, reproduced, ledger):
    outcome = replay(moved / ledger, device_name="cpu")
    assert outcome.failures == []
    assert outcome.confirmed == outcome.claims > KEPT
    whole = replay(reproduced / ledger, device_name="cpu")
    assert outcome.claims + outcome.left_out == whole.claims
    told = json.loads((moved / ledger / "verification.json").read_text())
    assert (told["claims"], told["confirmed"], told["failures"]) == (whole.claims, whole.confirmed, [])
    assert told["packed"]["confirmed"] == outcome.claims
    assert told["made"]["machine"]
    assert "T" in told["made"]["date"]


def test_the_command_says_it_too(moved):
    checked = call("verify", moved / LEDGERS[0], "--device", "cpu")
    assert checked.exit_code == 0, checked.output
    assert "more are of images that were not packed" in checked.output


@pytest.mark.parametrize("ledger", LEDGERS)
def test_rows_are_the_same_but_for_images(published, reproduced, ledger):
    packed, whole = Record.read(published / ledger), Record.read(reproduced / ledger)
    kept = set(whole.sample.order[:KEPT])
    assert packed.packed["images"] == KEPT
    assert packed.packed["of"] == whole.settings["n"]
    for mine, theirs in zip(packed.rows, whole.rows, strict=True):
        assert {**_fields(mine), "image": None} == {**_fields(theirs), "image": None}
        assert (mine.image is not None) == (theirs.image is not None and theirs.example in kept)
    for norm in whole.norms:
        assert packed.worst(norm) == whole.worst(norm)


def _fields(row):
    return {name: getattr(row, name) for name in row.__slots__}


def test_most_images_are_whole_levels(published):
    packed = [Record.read(published / ledger).packed for ledger in LEDGERS]
    assert sum(each["rounded"] for each in packed) > 4 * sum(each["exact"] for each in packed) > -1
    pictures = Pictures.of(published / LEDGERS[0])
    seen = 0
    for entry in Record.read(published / LEDGERS[0]).entries:
        for number in pictures.batches(entry):
            levels = pictures.adversarial(entry, number)["image"] * 255
            seen += int(((levels - levels.round()).abs() < 1e-4).flatten(1).all(dim=1).sum())
    assert seen >= packed[0]["rounded"] > 0


def test_nothing_of_the_machine_is_left(published, reproduced, data_folder):
    places = {str(reproduced), str(published), str(data_folder), str(Path.home()), tempfile.gettempdir()}
    for path in published.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            content = lzma.decompress(content) if path.suffix == ".xz" else content
            found = [place for place in places if place.encode() in content]
            assert not found, f"{path.relative_to(published)} names {found}"


def test_a_report_that_holds_is_taken_over(published, reproduced):
    """All its rows are finished, so it says what the ledgers say."""
    for name in ("tables.csv", "tables.md", "tables.tex"):
        assert (published / "digits" / "report" / name).read_bytes() == (reproduced / "report" / name).read_bytes()
    assert "<h1>breakable</h1>" in (published / "digits" / "report" / "report.html").read_text(encoding="utf-8")


def test_paths_are_told_from_the_ledger_and_from_the_results(published):
    record = Record.read(published / FIXED / SECOND)
    assert record.settings["model"] == "../model"
    assert record.settings["twin"] == "../../../baseline/seed-0/model"
    assert record.made_with["command"][0] == "linocut"
    repeat = record.made_with["repeat"]
    assert repeat[1] == f"{FIXED}/model"
    assert repeat[repeat.index("--twin") + 1] == f"{BASE}/model"
    assert repeat[-2:] == ["--root", "DATA"]
    assert (published / repeat[1] / "card.json").is_file()
    page = (published / "digits" / "report" / "report.html").read_text(encoding="utf-8")
    assert f"linocut verify {FIXED}/{SECOND}" in page


def test_report_and_overview_say_the_same_of_packed_and_whole_ledgers(published, reproduced, tmp_path):
    for source in (published, reproduced):
        write([source / ledger for ledger in LEDGERS], tmp_path / source.name, title="the same")
    packed, whole = tmp_path / published.name, tmp_path / reproduced.name
    assert (packed / "tables.csv").read_text() == (whole / "tables.csv").read_text()
    assert "linocut verify" in (packed / "report.html").read_text(encoding="utf-8")
    lines = [(source / "overview.csv").read_text().splitlines() for source in (published, reproduced)]
    assert sorted(lines[0]) == sorted(lines[1])


def flip(path, place=0.5):
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)


def test_a_flipped_bit_is_found(moved):
    ledger = moved / LEDGERS[0]
    shard = next(path for path in sorted(ledger.glob("images/*/*.xz")))
    whole = shard.read_bytes()
    for place in (0.1, 0.5, 0.9):
        flip(shard, place)
        assert replay(ledger, device_name="cpu").failures
        shard.write_bytes(whole)
    shard.unlink()
    assert all("not kept" in failure for failure in replay(ledger, device_name="cpu").failures)
    shard.write_bytes(whole)
    assert not replay(ledger, device_name="cpu").failures
    flip(ledger / "rows.safetensors.xz")
    with pytest.raises(InputError, match="damaged"):
        replay(ledger, device_name="cpu")
    refused = call("verify", ledger, "--device", "cpu")
    assert refused.exit_code == 2


def test_a_row_that_was_altered_or_robbed_of_its_image_fails(moved):
    ledger = moved / LEDGERS[0]
    rows = ledgers.read_rows(ledger)
    claim = next(row for row in rows if row.image)
    for image in ("0" * 16, None):
        seed = headers.read(ledger)["settings"]["seed"]
        columns.write(ledger, [_with(row, image) if row is claim else row for row in rows], seed)
        assert replay(ledger, device_name="cpu").failures


@pytest.mark.parametrize("change", ["seed", "config"])
def test_a_header_that_was_altered_is_denied_by_the_rows(change, moved):
    ledger = moved / LEDGERS[0]
    header = json.loads((ledger / headers.NAME).read_text())
    if change == "seed":
        header["settings"]["seed"] += 1
    else:
        header["entries"]["clean"]["config"] = "another"
    (ledger / headers.NAME).write_text(json.dumps(header))
    assert replay(ledger, device_name="cpu").failures


def _with(row, image):
    return type(row)(**{**_fields(row), "image": image})


def test_a_packed_ledger_is_not_gone_on_with(moved):
    before = sorted(path for path in moved.rglob("*"))
    repeat = Record.read(moved / BASE / FIRST).made_with["repeat"]
    words = [moved / word if word.endswith("/model") else word for word in repeat[:-2]]
    refused = call(*words, "--out", moved / BASE / FIRST)
    assert refused.exit_code == 2
    assert "packed ledger" in refused.output
    assert sorted(path for path in moved.rglob("*")) == before


def test_the_catalogue_names_code_machine_and_hashes(published):
    told = unsealed((published / "published.json").read_bytes(), "published.json")
    assert list(told["works"]) == [FIXED, BASE]
    assert told["open"] == {}
    assert len(told["made"]["source"]) == 64
    for place, work in told["works"].items():
        assert {f"{place}/model", f"{place}/{FIRST}", f"{place}/{SECOND}"} <= set(work["hashes"])
