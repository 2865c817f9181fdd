"""Cutting and writing back are each other's inverse, for every offset and flip."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from linocut.data.augment import Windows
from linocut.errors import InputError


def distinct(n, c, h, w):
    """Canvases in which every value occurs once, so that any misplaced pixel shows."""
    return torch.arange(n * c * h * w, dtype=torch.float32).view(n, c, h, w)


def test_every_offset_and_flip_is_inverted():
    height, width, size = 7, 6, (4, 3)
    tops, lefts, flips = torch.meshgrid(torch.arange(4), torch.arange(4), torch.arange(2), indexing="ij")
    top, left, flip = tops.flatten(), lefts.flatten(), flips.flatten().bool()
    canvases = distinct(len(top), 2, height, width)
    examples = torch.randperm(len(top), generator=torch.Generator().manual_seed(0))
    windows = Windows.at(top, left, flip, size)
    crops = windows.cut(canvases, examples)
    for i, example in enumerate(examples):  # the plain way, image by image
        plain = canvases[example, :, top[i] : top[i] + 4, left[i] : left[i] + 3]
        assert torch.equal(crops[i], plain.flip(2) if flip[i] else plain)
    untouched = canvases.clone()
    windows.write_back(canvases, examples, crops)
    assert torch.equal(canvases, untouched)
    windows.write_back(canvases, examples, crops + 10_000)
    assert torch.equal(windows.cut(canvases, examples), crops + 10_000)
    assert (canvases >= 10_000).sum() == crops.numel()  # and nothing outside the windows changed


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_write_back_inverts_cutting(data):
    draw = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    n, c, height, width = draw(1, 5), draw(1, 3), draw(1, 9), draw(1, 9)
    size, batch = (draw(1, height), draw(1, width)), draw(0, n)
    generator = torch.Generator().manual_seed(draw(0, 99))
    canvases = distinct(n, c, height, width)
    examples = torch.randperm(n, generator=generator)[:batch]
    windows = Windows.draw(batch, (height, width), size, flip=data.draw(st.booleans()), generator=generator)
    crops, before = windows.cut(canvases, examples), canvases.clone()
    canvases[examples] = -1.0
    windows.write_back(canvases, examples, crops)
    kept = canvases >= 0
    assert torch.equal(canvases[kept], before[kept])
    assert kept[examples].sum() == crops.numel()


def test_draws_cover_all_offsets_evenly_and_flip_half():
    generator = torch.Generator().manual_seed(0)
    windows = Windows.draw(9_000, (10, 10), (8, 8), flip=True, generator=generator)
    tops = windows.rows[:, 0]
    assert torch.bincount(tops).tolist() == pytest.approx([3000] * 3, abs=200)
    flipped = windows.columns[:, 0] > windows.columns[:, 1]
    assert flipped.float().mean().item() == pytest.approx(0.5, abs=0.03)
    straight = Windows.draw(100, (10, 10), (8, 8), flip=False, generator=generator)
    assert (straight.columns[:, 0] < straight.columns[:, 1]).all()


def test_a_window_larger_than_its_canvas_is_refused():
    with pytest.raises(InputError):
        Windows.draw(1, (3, 8), (4, 4), flip=False, generator=torch.Generator())
