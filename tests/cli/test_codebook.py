"""linocut codebook: fit, show, compare."""

import json
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from linocut.cli import app


def run(*arguments, status=0):
    result = CliRunner().invoke(app, ["codebook", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result.stdout


@pytest.fixture
def pictures(tmp_path):
    """Class folders of small colour pictures."""
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "set" / name).mkdir(parents=True)
        for i in range(4):
            pixels = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "set" / name / f"{i}.png")
    return tmp_path / "set"


def test_fit_and_show(pictures, tmp_path):
    out = tmp_path / "book.json"
    made = json.loads(
        run("fit", "folder", "--root", pictures, "--image-size", 16, "--k", 12, "--r", 30, "--out", out, "--json")
    )
    assert len(made["colors"]) == 12
    assert made["smallest_separation"] > 30
    assert made["origin"]["split"] == "train"
    assert made["origin"]["images"] == 6
    assert sum(made["origin"]["population"]) == 6 * 256
    assert json.loads(run("show", out, "--json"))["colors"] == made["colors"]
    told = run("show", out)
    assert "12 codes, no two closer than" in told
    assert "and 2 more" in told
    medoids = run(
        "fit", "folder", "--root", pictures, "--image-size", 16, "--k", 3, "--out", out, "--builder", "medoids"
    )
    assert "medoids codebook, 3 codes" in medoids


def test_mnist_is_black_and_near_white(data_root, tmp_path):
    if not (data_root / "mnist").is_dir():
        pytest.skip("real data: no mnist")
    pytest.importorskip("matplotlib")
    figure = tmp_path / "palette.png"
    made = json.loads(
        run("fit", "mnist", "--root", data_root, "--out", tmp_path / "mnist.json", "--figure", figure, "--json")
    )
    assert made["colors"] == [[0], [253]]
    assert figure.is_file()


def test_digits_take_the_settings_of_mnist(tmp_path):
    pytest.importorskip("sklearn")
    origin = json.loads(run("fit", "digits", "--out", tmp_path / "d.json", "--json"))["origin"]
    assert (origin["k"], origin["r"], origin["data"]) == (2, 153, "digits")


def test_compare(pictures, tmp_path):
    measures = json.loads(run("compare", pictures / "cat", "--json"))
    assert {m["kind"] for m in measures} == {"fixed", "adaptive", "depth"}
    assert len({m["picture"] for m in measures}) == 4
    assert all(
        set(m) == {"picture", "kind", "setting", "num_colors", "rmse", "separation", "movable"} for m in measures
    )
    told = run("compare", pictures / "cat" / "0.png", pictures / "dog", "--eps", "4/255")
    assert "mean of 5" in told
    assert "its best case" in told
    run("fit", "folder", "--root", pictures, "--image-size", 16, "--k", 12, "--out", tmp_path / "book.json")
    told = run("compare", pictures / "cat", "--codebook", tmp_path / "book.json")
    assert "fixed k 12" in told
    assert "best case" not in told


def test_compare_leaves_out_what_cannot_be_read(pictures):
    (pictures / "cat" / "torn.png").write_bytes(b"garbage")
    result = CliRunner().invoke(app, ["codebook", "compare", str(pictures / "cat"), "--json"])
    assert result.exit_code == 1
    assert "left out: " in result.stderr
    assert "torn.png" in result.stderr
    assert len({m["picture"] for m in json.loads(result.stdout)}) == 4


def test_what_is_wrong_is_told_in_a_line(pictures, tmp_path):
    assert run("show", tmp_path / "none.json", status=2) == ""
    assert run("compare", tmp_path / "nothing", status=2) == ""
    (tmp_path / "empty").mkdir()
    assert run("compare", tmp_path / "empty", status=2) == ""
    assert run("fit", "folder", "--root", pictures, "--k", 0, "--out", tmp_path / "a.json", status=2) == ""


def test_a_figure_never_takes_the_place_of_another_file(pictures, tmp_path):
    pytest.importorskip("matplotlib")
    one, book = pictures / "cat" / "0.png", tmp_path / "book.png"
    run("fit", "folder", "--root", pictures, "--image-size", 16, "--k", 3, "--out", book)
    for verb, taken in (
        (("compare", pictures), one),
        (("compare", one, "--codebook", book), book),
        (("show", book), book),
        (("fit", "folder", "--root", pictures, "--k", 3, "--out", tmp_path / "a.png"), tmp_path / "A.png"),
    ):
        before = taken.read_bytes() if taken.exists() else None
        assert run(*verb, "--figure", taken, status=2) == ""
        assert (taken.read_bytes() if taken.exists() else None) == before


def test_a_figure_that_cannot_be_drawn_is_refused_before_any_work(pictures, tmp_path, monkeypatch):
    book = tmp_path / "book.json"
    fit = ("fit", "folder", "--root", pictures, "--image-size", 16, "--k", 3, "--out")
    run(*fit, book)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for module, work in (
        ("linocut.transform.modules.FixedCodebook", "load"),
        ("linocut.transform.modules.FixedCodebook", "fit"),
        ("linocut.recipes.codebook_compare", "compare"),
    ):
        monkeypatch.setattr(f"{module}.{work}", None)  # to call it is an error of another kind
    for verb in ((*fit, tmp_path / "new.json"), ("show", book), ("compare", pictures)):
        for name in ("a.gif", "a.png"):
            assert run(*verb, "--figure", tmp_path / name, status=2) == ""
    assert not (tmp_path / "new.json").exists()
