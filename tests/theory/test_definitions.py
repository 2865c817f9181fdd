import itertools

import numpy as np
import pytest

from linocut.errors import InputError
from linocut.theory.definitions import (
    color_pairs,
    fixed_codebook,
    keeps_clusters_together,
    mnist_d,
    mnist_g,
    recolored,
    stretch_to_black_and_white,
    two_color_codebook,
)

DIGIT = np.array([[0, 3, 127], [128, 255, 0]])


def test_fixed_codebook_takes_the_nearest_color_and_the_smaller_on_a_tie():
    assert fixed_codebook(np.array([0, 4, 5, 6, 255]), (10, 0)).tolist() == [0, 0, 0, 10, 10]
    with pytest.raises(InputError, match="0 to 255"):
        fixed_codebook(DIGIT, (0, 256))


def test_mnist_d_is_fc_of_black_and_white():
    levels = np.arange(256)
    assert (mnist_d(levels) == fixed_codebook(levels, (0, 255))).all()
    assert mnist_d(np.array([127, 128])).tolist() == [0, 255]


def test_mnist_g_holds_every_pair_at_least_w_apart_once():
    for w in (1, 5, 128, 255):
        pairs = list(color_pairs(w))
        expected = [p for p in itertools.product(range(256), range(256)) if p[1] - p[0] >= w]
        assert pairs == expected
    images = mnist_d(DIGIT)[None]
    rows = list(mnist_g(np.concatenate([images, images]), 254))
    assert [(index, c1, c2) for index, c1, c2, _ in rows] == [
        (i, *pair) for i in (0, 1) for pair in ((0, 254), (0, 255), (1, 255))
    ]
    assert all((x == fixed_codebook(images[0], (c1, c2))).all() for _, c1, c2, x in rows)


def test_mnist_g_is_lazy():
    endless = iter(mnist_g(np.zeros((10**6, 2, 2), dtype=np.uint8), 1))
    assert next(endless)[:3] == (0, 0, 1)
    for w in (0, 256):
        with pytest.raises(InputError):
            color_pairs(w)


def test_two_color_codebook_splits_at_the_exact_midpoint():
    assert two_color_codebook(np.array([[0, 2, 3, 5]])).tolist() == [[0, 0, 5, 5]]
    assert two_color_codebook(np.array([[0, 2, 3, 4]])).tolist() == [[0, 0, 4, 4]]  # 2 is the midpoint: low
    assert two_color_codebook(np.array([[7, 7]])).tolist() == [[7, 7]]


def test_stretching_needs_exactly_two_colors():
    assert stretch_to_black_and_white(np.array([[9, 11, 9]])).tolist() == [[0, 255, 0]]
    for x in ([[7, 7]], [[1, 2, 3]]):
        with pytest.raises(InputError, match="exactly two"):
            stretch_to_black_and_white(np.array(x))


def test_recoloring_and_stretching_are_inverse():
    image = mnist_d(DIGIT)
    assert (stretch_to_black_and_white(two_color_codebook(recolored(image, 30, 35))) == image).all()


def test_cap_equals_its_definition_over_all_pairs_of_pixels():
    dice = np.random.default_rng(0)
    seen = set()
    for _ in range(300):
        x, delta = dice.integers(0, 3, (2, 3)), dice.integers(-1, 2, (2, 3))
        y = two_color_codebook(x + delta).ravel()
        pairs = itertools.combinations(range(6), 2)
        literal = all(y[i] == y[j] for i, j in pairs if x.ravel()[i] == x.ravel()[j])
        assert keeps_clusters_together(x, delta, two_color_codebook) == literal
        seen.add(literal)
    assert seen == {True, False}
