"""The canvas store: what is written comes back within the stated rounding, on the device or in a file."""

import os

import pytest
import torch

from linocut.data.augment import Windows
from linocut.errors import InputError
from linocut.training import canvas as canvases
from linocut.training.canvas import Canvas, fits_in_memory

from .conftest import make_images

CPU = torch.device("cpu")


def canvas_of(images, **changes):
    return Canvas(images.pixels, **{"pad": 1, "eps": 8 / 255, "store": "float32", "device": CPU, **changes})


def windows_at(top, left, flip, n):
    return Windows.at(torch.full((n,), top), torch.full((n,), left), torch.full((n,), flip), (6, 6))


@pytest.mark.parametrize(("store", "error"), [("float32", 1e-7), ("half", 2**-16), ("int8", 8 / 255 / 254)])
@pytest.mark.parametrize("on_disk", [False, True])
def test_perturbations_come_back_within_the_stated_rounding(images, tmp_path, store, error, on_disk):
    canvas = canvas_of(images, store=store, file=tmp_path / "canvas" if on_disk else None)
    generator = torch.Generator().manual_seed(0)
    for top, left, flip in ((0, 0, False), (2, 1, True), (1, 2, False)):
        windows, examples = windows_at(top, left, flip, 10), torch.randperm(40, generator=generator)[:10]
        natural, _ = canvas.cut(examples, windows)
        change = (torch.rand(natural.shape, generator=generator) * 2 - 1) * (8 / 255)
        canvas.write_back(examples, windows, natural, natural + change)
        again, perturbed = canvas.cut(examples, windows)
        assert torch.equal(again, natural)
        assert (perturbed - natural - change).abs().max() <= error + 1e-7


def test_the_border_is_half_grey_and_the_rest_exact(images):
    canvas = canvas_of(images, pad=2)
    natural = canvas.cut_natural(torch.arange(40), windows_at(0, 0, False, 40))
    assert (natural[:, :, :2] == 0.5).all()
    assert (natural[:, :, :, :2] == 0.5).all()
    assert torch.equal(natural[:, :, 2:, 2:], images.pixels[:, :, :4, :4].float() / 255)


def test_reset_starts_from_noise_that_depends_on_the_generator_alone(images):
    first, second = canvas_of(images), canvas_of(images)
    first.change.fill_(3.0)
    for canvas in (first, second):
        canvas.reset(torch.arange(40), 0.001, torch.Generator().manual_seed(4))
    assert torch.equal(first.change, second.change)
    assert first.change.std().item() == pytest.approx(0.001, rel=0.05)


def test_int8_refuses_radii_at_which_the_start_noise_would_vanish(images):
    with pytest.raises(InputError, match="int8"):
        canvas_of(images, store="int8", eps=0.3)


def test_a_file_that_cannot_be_made_is_a_clear_error(images, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="canvases"):
        canvas_of(images, file=tmp_path / "file" / "canvas")


@pytest.mark.parametrize(
    ("told", "sysconf", "fits"),
    [
        ("MemFree: 1 kB\nMemAvailable: 9000000 kB\n", 1, True),  # the rest holds caches that make room
        ("MemFree: 9000000 kB\nMemAvailable: 1 kB\n", 10**9, False),
        ("MemFree: 9000000 kB\n", 1, False),
        (None, 10**9, True),
        (None, 1, False),
        (None, ValueError, True),
        (None, AttributeError, True),
    ],
)
def test_free_memory_is_asked_where_the_system_tells_it(images, tmp_path, monkeypatch, told, sysconf, fits):
    def answer(name):
        if isinstance(sysconf, type):
            raise sysconf
        return sysconf if name == "SC_AVPHYS_PAGES" else 1

    monkeypatch.setattr(canvases, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(os, "sysconf", answer)
    if told is not None:
        canvases.MEMORY.write_text(told)
    assert fits_in_memory(images.pixels, 1, "half", CPU) is fits


def test_what_fits_in_memory_is_kept_there():
    assert fits_in_memory(make_images().pixels, 1, "half", CPU)
    assert not fits_in_memory(torch.empty(10**9, 3, 256, 256, dtype=torch.uint8, device="meta"), 1, "half", CPU)
