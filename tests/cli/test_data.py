"""linocut data: list, check, prepare, download, for people and as JSON."""

import hashlib
import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from linocut.cli import app
from linocut.data import catalogue


def run(*arguments, status=0):
    """Standard output of the command, which must end with this status; on status 2 what it complains of."""
    result = CliRunner().invoke(app, ["data", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.output
    return result.stderr if status == 2 else result.stdout


@pytest.fixture
def pictures(tmp_path):
    random = np.random.default_rng(3)
    for name in ("cat", "dog"):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for i in range(5):
            pixels = random.integers(0, 256, (16, 16, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / name / f"{i}.png")
    return tmp_path / "pictures"


def test_list_names_every_set_with_its_licence():
    told = json.loads(run("list", "--json"))
    assert {row["name"] for row in told["download"]} == set(catalogue.ENTRIES)
    assert told["local"] == ["folder", "npz", "digits"]
    shown = run("list")
    for entry in catalogue.ENTRIES.values():
        assert entry.name in shown
        assert entry.licence in shown


def test_check_counts_and_writes_nothing(pictures):
    before = sorted(pictures.rglob("*"))
    train, test = json.loads(run("check", pictures, "--json"))
    assert (train["images"], train["classes"], train["shape"]) == (8, {"cat": 4, "dog": 4}, [3, 16, 16])
    assert (test["images"], len(test["sha256"])) == (2, 64)
    assert "cat: 4, dog: 4" in run("check", pictures)
    assert sorted(pictures.rglob("*")) == before


def test_check_of_nothing_ends_with_2(tmp_path):
    for place in ("none", "none.npz"):
        assert "no such folder or file" in run("check", tmp_path / place, status=2)


def test_check_names_what_is_damaged_and_ends_with_1(pictures):
    for path in pictures.rglob("3.png"):
        path.write_bytes(b"no picture")
    rows = json.loads(run("check", pictures, "--json", status=1))
    assert any("3.png" in row.get("error", "") for row in rows)
    assert run("check", pictures / "cat", status=1) == ""


def test_check_finds_a_published_file_that_was_changed(tmp_path, data_root):
    folder = tmp_path / "mnist"
    folder.mkdir()
    for file in catalogue.MNIST.files:
        source = data_root / "mnist" / file.file_name
        if not source.is_file():
            pytest.skip("real data: no mnist")
        (folder / file.file_name).symlink_to(source)
    run("check", tmp_path)
    changed = folder / "t10k-labels-idx1-ubyte.gz"
    content = bytearray(changed.read_bytes())
    content[4] ^= 1  # the time in the gzip header: the data is whole, the file is not the published one
    changed.unlink()
    changed.write_bytes(content)
    rows = json.loads(run("check", tmp_path, "--json", status=1))
    assert [row["published"]["t10k-labels-idx1-ubyte.gz"] for row in rows] == [False, False]


def test_prepare_keeps_the_images_and_draws_a_sheet(pictures, tmp_path):
    sheet = tmp_path / "out" / "sheet.png"
    train, test = json.loads(
        run("prepare", "folder", "--root", pictures, "--cache", tmp_path / "kept", "--sheet", sheet, "--json")
    )
    assert (train["images"], test["images"]) == (8, 2)
    assert len(list((tmp_path / "kept").glob("folder-*.images"))) == 2
    with Image.open(sheet) as drawn:
        assert drawn.width > 8 * 128
    again = run("prepare", "folder", "--root", pictures, "--cache", tmp_path / "kept", "--image-size", 16)
    assert train["sha256"] in again


def test_download_says_what_it_cannot_fetch_and_where_it_put_the_rest(tmp_path, monkeypatch):
    assert "there are mnist" in run("download", "imagenet", "--root", tmp_path, status=2)
    assert f"linocut data download mnist --root {tmp_path}" in run("prepare", "mnist", "--root", tmp_path, status=2)
    content = b"whole"
    file = catalogue.RemoteFile(
        url="https://example.com/x.gz", size=len(content), sha256=hashlib.sha256(content).hexdigest(), folder="mine"
    )
    mine = catalogue.Entry(name="mine", homepage="", licence="MIT", images=(1, 1), num_classes=1, files=(file,))
    monkeypatch.setitem(catalogue.ENTRIES, "mine", mine)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x.gz").write_bytes(content)
    assert "1 files under" in run("download", "mine", "--root", tmp_path)
    assert json.loads(run("download", "mine", "--root", tmp_path, "--json"))["files"] == [str(tmp_path / "mine/x.gz")]


def test_a_seed_below_zero_is_refused_and_a_size_to_download_says_how_to_load_it(tmp_path):
    assert "--seed" in run("prepare", "digits", "--seed", -1, "--sheet", tmp_path / "a.png", status=2)
    lines = run("list").splitlines()
    assert "under the name imagenette" in lines[next(i for i, l in enumerate(lines) if "imagenette-160" in l) + 2]
