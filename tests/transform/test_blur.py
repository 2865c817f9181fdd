"""Edges, kernel choice and blur against brute force, the paper's bound, NumPy and OpenCV."""

import itertools

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from linocut.errors import InputError
from linocut.transform import reference
from linocut.transform.settings import FULL_SCALE, BlurRule

SOBEL_MAXIMUM = 20  # of gx² + gy² over patches of zeros and ones


def response(image):
    """The paper's edge response in levels, 0..255."""
    return np.sqrt(reference.edge_strength(image) / SOBEL_MAXIMUM) / 8


def test_largest_edge_is_brute_force_over_all_patches():
    patches = np.array(list(itertools.product((0, 1), repeat=9))).reshape(-1, 3, 3)
    centre = reference.edge_strength(patches)[:, 1, 1]
    assert centre.max() == SOBEL_MAXIMUM  # a convex function is largest at a corner of the cube
    white = BlurRule.of((3, 1), (255,))
    assert white.limits[0] == SOBEL_MAXIMUM * FULL_SCALE**2
    strongest = FULL_SCALE * patches[centre.argmax()][None]
    assert reference.choose_kernel(reference.edge_strength(strongest), white)[0, 1, 1] == 0


@given(
    image=arrays(np.int64, (1, 4, 5), elements=st.integers(0, FULL_SCALE)),
    delta=arrays(np.int64, (1, 4, 5), elements=st.integers(-64, 64)),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_response_moves_by_at_most_twice_eps(image, delta):
    moved = np.clip(image + delta, 0, FULL_SCALE)
    assert np.abs(response(moved) - response(image)).max() <= 2 * 8 + 1e-9


def test_bound_on_response_is_attained():
    patches = np.array(list(itertools.product((-64, 64), repeat=9))).reshape(-1, 3, 3)
    moved = response(1024 + patches)[:, 1, 1]
    assert moved.max() == pytest.approx(16, abs=1e-12)  # from a flat patch, whose response is 0


def test_threshold_is_strict():
    step = np.zeros((1, 3, 4), dtype=np.int64)
    step[:, :, 2:] = 80  # gx = 4 * 80 beside the step, gy = 0: 320² = 1280 * 80, a threshold of sqrt(80)
    assert reference.edge_strength(step)[0, 1, 1] == 102400
    at, below = (BlurRule(kernel_sizes=(3, 1), limits=(limit,)) for limit in (102400, 102399))
    assert reference.choose_kernel(reference.edge_strength(step), at)[0, 1, 1] == 0
    assert reference.choose_kernel(reference.edge_strength(step), below)[0, 1, 1] == 1


@pytest.mark.parametrize("size", [1, 3, 5, 7, 9])
def test_small_kernels_are_opencvs(size):
    weights, s = reference.gaussian_weights(size)
    assert sum(weights) == 2**s
    np.testing.assert_allclose(np.array(weights) / 2**s, cv2.getGaussianKernel(size, 0)[:, 0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("size", [11, 13, 15, 21, 31, 51])
def test_large_kernels_are_opencvs_to_a_1024th(size):
    weights, s = reference.gaussian_weights(size)
    half = size // 2
    assert sum(weights) == 2**s == 1024
    assert weights == weights[::-1]
    error = np.abs(1024 * cv2.getGaussianKernel(size, 0)[:, 0] - weights)
    assert np.delete(error, half).max() <= 0.5
    assert error[half] <= half  # the centre takes up what the others' roundings left


@pytest.mark.parametrize("size", [3, 5, 7, 9, 11, 13])
@pytest.mark.parametrize("shape", [(17, 23), (40, 14)])
def test_blur_is_opencvs_on_whole_levels(size, shape):
    levels = np.random.default_rng(size).integers(0, 256, shape, dtype=np.uint8)
    ours = reference.gaussian_blur(8 * levels[None].astype(np.int64), size)[0] / 8
    theirs = cv2.GaussianBlur(levels, (size, size), 0)
    # Theirs is rounded to a level, ours to an eighth; above 9 their weights are rounded to 256ths.
    assert np.abs(ours - theirs).max() <= (0.5 + 1 / 16 if size <= 9 else 2)


@given(length=st.integers(1, 9), pad=st.integers(0, 40))
@settings(deadline=None, derandomize=True)
def test_reflection_is_numpys_on_any_side(length, pad):
    mode = "reflect" if length > 1 else "edge"
    np.testing.assert_array_equal(reference.reflect(length, pad), np.pad(np.arange(length), pad, mode=mode))


def test_largest_sum_fits_int32():
    for size in (3, 5, 7, 9, 11, 101):
        _, s = reference.gaussian_weights(size)
        assert FULL_SCALE * 4**s + (1 << (2 * s - 1)) < 2**31


@pytest.mark.parametrize(
    ("kernel_sizes", "edge_thresholds"),
    [
        ((), ()),
        ((4, 3), (20,)),
        ((0,), ()),
        ((-3,), ()),
        ((3.5,), ()),
        ((float("nan"),), ()),
        (("3",), ()),
        ((True,), ()),
        ((3, 5), (20,)),
        ((5, 3, 1), (20,)),
        ((5, 3, 1), (40, 20)),
        ((5, 3, 1), (20, 20)),
        ((5, 3), (-1,)),
        ((5, 3), (float("nan"),)),
        ((5, 3), (float("inf"),)),
        ((5, 3), ("20",)),
        ((3,) * 257, range(256)),  # a pixel's choice is kept in a byte
    ],
)
def test_impossible_rules_are_refused(kernel_sizes, edge_thresholds):
    with pytest.raises(InputError):
        BlurRule.of(kernel_sizes, edge_thresholds)


def test_a_threshold_that_no_edge_exceeds():
    for threshold in (255, 1e9, 1e200):
        rule = BlurRule.of((3, 1), (threshold,))
        assert SOBEL_MAXIMUM * FULL_SCALE**2 <= rule.limits[0] < 2**31
