"""Fixed against adaptive codebooks on pictures whose numbers are known."""

import numpy as np
import pytest
import torch
from PIL import Image

from linocut.errors import InputError
from linocut.recipes import codebook_compare as comparing
from linocut.recipes.codebook_figures import palette_figure, tradeoff_figure
from linocut.recipes.figures import save_figure
from linocut.transform.modules import AdaptiveCodebook, FixedCodebook


def two_colors(low, high, side=8):
    """Half of the picture in one grey, half in another, uint8 (1,H,W)."""
    pixels = torch.full((1, side, side), low, dtype=torch.uint8)
    pixels[:, side // 2 :] = high
    return pixels


@pytest.fixture
def pictures(tmp_path):
    """Three colour pictures and a grey one."""
    rng = np.random.default_rng(0)
    for i in range(3):
        ramp = np.linspace(0, 200, 20)[:, None, None] + rng.integers(0, 50, (20, 24, 3))
        Image.fromarray(ramp.astype(np.uint8)).save(tmp_path / f"{i}.png")
    Image.fromarray(np.full((9, 9), 77, np.uint8)).save(tmp_path / "grey.png")
    return comparing.Pictures.of(sorted(tmp_path.glob("*.png")))


def test_exact_codes_have_no_error_and_the_right_distance():
    m = comparing.measured("p", two_colors(40, 100), "fixed", 2, FixedCodebook(colors=[[40], [100]]), 8 / 255)
    assert (m.num_colors, m.rmse, m.separation, m.movable) == (2, 0.0, 60.0, 0.0)


def test_movable_pixels_are_those_that_eps_sends_over_the_border():
    book = FixedCodebook(colors=[[40], [100]])  # the border is at 70
    for low, eps, share in ((66, 3, 0.0), (66, 5, 0.5), (65, 4, 0.0)):
        assert comparing.measured("p", two_colors(low, 200), "fixed", 2, book, eps / 255).movable == share
    frozen = comparing.measured("p", two_colors(66, 200), "adaptive", 8, AdaptiveCodebook(), 60 / 255)
    assert frozen.movable == 0  # its own colours, 66 and 200, are held: the border is at 133


def test_one_colour_has_no_separation():
    m = comparing.measured("p", two_colors(9, 9), "adaptive", 8, AdaptiveCodebook(), 8 / 255)
    assert (m.num_colors, m.separation) == (1, None)


def test_sweep(pictures):
    book = comparing.own_codebook(pictures, 16)
    assert all(pixels.shape[0] == 3 for _, pixels in pictures)
    measures = list(comparing.compare(pictures, book, 8 / 255))
    assert len(measures) == 4 * len(list(comparing.transforms(book, 8 / 255)))
    fixed = comparing.curve(measures, "fixed")
    assert [row.setting for row in fixed][-1] == len(book.codes)
    assert fixed[0].rmse > fixed[-1].rmse
    assert all(m.separation is None or m.separation > 16 for m in measures if m.kind == "fixed")
    depth = comparing.curve(measures, "depth")
    assert [row.setting for row in depth] == list(comparing.DEPTHS)


def test_grey_pictures_need_a_grey_codebook(tmp_path):
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "grey.png")
    grey = comparing.Pictures.of([tmp_path / "grey.png"])
    with pytest.raises(InputError, match="these pictures are grey"):
        list(comparing.compare(grey, FixedCodebook(colors=[[0, 0, 0]]), 8 / 255))


def test_files_that_cannot_be_read_are_left_out_and_named(pictures, tmp_path):
    (tmp_path / "torn.png").write_bytes(pictures.paths[0].read_bytes()[:60])
    (tmp_path / "empty.jpg").touch()
    found = comparing.Pictures.of([tmp_path / "torn.png", *pictures.paths, tmp_path / "empty.jpg"])
    assert (found.paths, found.channels) == (pictures.paths, 3)
    assert ["torn.png" in found.left_out[0], "empty.jpg" in found.left_out[1]] == [True, True]
    with pytest.raises(InputError, match=r"no picture can be read: .*torn\.png"):
        comparing.Pictures.of([tmp_path / "torn.png"])


def test_pictures_of_one_colour_have_no_mean_separation(tmp_path):
    pytest.importorskip("matplotlib")
    Image.fromarray(np.full((4, 4), 7, np.uint8)).save(tmp_path / "flat.png")
    flat = comparing.Pictures.of([tmp_path / "flat.png"])
    book = comparing.own_codebook(flat, 16)
    measures = list(comparing.compare(flat, book, 8 / 255))
    assert [row.separation for row in comparing.curve(measures, "fixed")] == [None]
    save_figure(tradeoff_figure(measures, 8 / 255, book), tmp_path / "a.png")


def test_grey_codes_are_drawn_on_coloured_pictures(pictures, tmp_path):
    pytest.importorskip("matplotlib")
    book = FixedCodebook.depth(3)
    measures = list(comparing.compare(comparing.Pictures.of(pictures.paths[:1]), book, 8 / 255))
    save_figure(tradeoff_figure(measures, 8 / 255, book), tmp_path / "a.png")
    assert (tmp_path / "a.png").is_file()


def test_figures(pictures, tmp_path):
    pytest.importorskip("matplotlib")
    book = comparing.own_codebook(pictures, 16)
    measures = list(comparing.compare(comparing.Pictures.of(pictures.paths[:2]), book, 8 / 255))
    save_figure(tradeoff_figure(measures, 8 / 255, book), tmp_path / "out" / "a.png")
    pixels = next(iter(pictures))[1][None].contiguous()
    books = [FixedCodebook.fit(pixels, k, 16) for k in (5, 500)] + [FixedCodebook.depth(3)]
    for i, shown in enumerate(books):
        save_figure(palette_figure(shown, r"$\frac{ $.json"), tmp_path / f"{i}.png")
    for path in (tmp_path / "out" / "a.png", tmp_path / "2.png"):
        with Image.open(path) as drawn:
            assert drawn.width > 1000
    with pytest.raises(InputError, match="could not write"):
        save_figure(palette_figure(FixedCodebook(colors=[[9]]), "title"), tmp_path / "0.png" / "b.png")
