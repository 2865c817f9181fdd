"""The figure of a few pictures: every step, in formats for papers."""

import sys

import pytest
import torch

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'linocut[report]'")

from linocut.data.images import write_png
from linocut.errors import InputError
from linocut.recipes import figures
from linocut.recipes.strip import explained, strip_figure
from linocut.transform.modules import EssentialFeatures

CPU = torch.device("cpu")


@pytest.fixture
def features():
    return EssentialFeatures(backend="torch")


def pictures(folder, shapes):
    paths = []
    for number, shape in enumerate(shapes):
        generator = torch.Generator().manual_seed(number)
        paths.append(folder / f"picture-{number}.png")
        write_png(paths[-1], torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator))
    return paths


def test_a_row_a_picture_and_a_column_a_step(tmp_path, features):
    found = explained(pictures(tmp_path, [(3, 20, 30), (1, 28, 28), (3, 9, 40)]), features, CPU)
    drawn = strip_figure(found, features.settings())
    assert len(drawn.axes) == 3 * 5
    assert [axes.get_title() for axes in drawn.axes[:5]] == ["input", "edges", "blurred", "palette", "output"]
    assert [axes.get_ylabel() for axes in drawn.axes[::5]] == ["picture-0.png", "picture-1.png", "picture-2.png"]
    colors = drawn.axes[3].get_xlabel()
    assert colors == f"{len(found[0][1].palette)} colours"


def test_one_picture_is_the_pipeline(tmp_path, features):
    drawn = strip_figure(explained(pictures(tmp_path, [(3, 16, 16)]), features, CPU), features.settings())
    assert [axes.get_title() for axes in drawn.axes][2] == "kernel choice"
    assert len(drawn.axes) == 6


def test_pictures_are_explained_on_the_device_asked_for(tmp_path, features, monkeypatch):
    seen = []
    monkeypatch.setattr(features, "explain", lambda images: [seen.append(images.device)])
    explained(pictures(tmp_path, [(3, 8, 8)]), features, torch.device("meta"))
    assert seen == [torch.device("meta")]


@pytest.mark.parametrize(("ending", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_every_format_is_written_and_the_same_twice(tmp_path, features, ending, begins):
    found = explained(pictures(tmp_path, [(3, 8, 8), (3, 8, 8)]), features, CPU)
    for name in ("a", "b"):
        figures.save_figure(strip_figure(found, features.settings()), tmp_path / f"{name}.{ending}")
    first = (tmp_path / f"a.{ending}").read_bytes()
    assert first.startswith(begins)
    assert first == (tmp_path / f"b.{ending}").read_bytes()


def test_another_ending_is_refused(tmp_path, features):
    for refuse in (figures.check, lambda path: figures.save_figure(None, path)):
        with pytest.raises(InputError, match=r"\.svg"):
            refuse(tmp_path / "figure.bmp")


def test_a_figure_is_refused_where_matplotlib_is_missing(tmp_path, monkeypatch):
    figures.check(tmp_path / "figure.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    figures.check(None)
    with pytest.raises(InputError, match=r"pip install 'linocut\[report\]'"):
        figures.check(tmp_path / "figure.png")
