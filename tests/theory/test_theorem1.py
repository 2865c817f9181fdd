import itertools

import numpy as np
import pytest

from linocut.theory import theorem1
from linocut.theory.definitions import keeps_clusters_together, two_color_codebook


@pytest.fixture(scope="module")
def decided():
    return theorem1.decide()


def test_counts_of_what_was_decided(decided):
    assert decided.failures == 0
    assert decided.pairs == sum(1 for w in range(1, 256) for eps in range(256) if 4 * eps < w) == 8256
    # extremes: alpha <= beta in 2 eps + 1 values, times the third value, for both conditions
    assert decided.extremes == sum(2 * (n * (n + 1) // 2) * n for n in range(1, 128, 2)) == 33_899_840


@pytest.mark.parametrize("eps", [0, 1, 2, 5])
def test_worst_extremes_are_four_eps(eps):
    low, high, _ = theorem1.largest_over_all_extremes(eps)
    assert (low, high) == (4 * eps, 4 * eps)


def test_outcome_depends_on_the_extremes_alone():
    """Images of 3 + 3 pixels with equal cluster extremes all end alike."""
    outcome = {}
    x = np.array([[0, 0, 0], [6, 6, 6]])
    for delta in itertools.product(range(-2, 3), repeat=6):
        d = np.array(delta).reshape(2, 3)
        key = tuple(d.min(1)) + tuple(d.max(1))
        double_mid = (x + d).min() + (x + d).max()
        high = 2 * (x + d) > double_mid
        parted = any(row.any() != row.all() for row in high)
        assert outcome.setdefault(key, parted) == parted
    assert set(outcome.values()) == {True, False}


def test_first_failure_is_a_quarter_of_w_rounded_up_and_not_one_off(decided):
    w = np.arange(1, 256)
    assert (decided.first_failure == np.ceil(w / 4)).all()
    for value in (1, 4, 5, 8, 9, 255):
        example = theorem1.counterexample(value)
        assert not keeps_clusters_together(example.image, example.delta, two_color_codebook)
        smaller = example.delta.clip(-(example.eps - 1), example.eps - 1)
        assert keeps_clusters_together(example.image, smaller, two_color_codebook)
        farther = example.image + (example.image > 0) * (4 * example.eps + 1 - value)
        assert keeps_clusters_together(farther, example.delta, two_color_codebook)


@pytest.mark.parametrize(
    ("w", "eps", "fails"), [(4, 1, True), (5, 1, False), (8, 2, True), (9, 2, False), (12, 3, True)]
)
def test_every_perturbation_of_small_images(w, eps, fails):
    failures, tried = theorem1.brute_force(w, eps, 2, 2)
    assert tried == (2 * eps + 1) ** 4
    assert (failures > 0) == fails


def test_brute_force_agrees_with_the_definitions():
    x = np.array([[0, 0], [4, 4]])
    deltas = (np.array(d).reshape(2, 2) for d in itertools.product(range(-1, 2), repeat=4))
    failures = sum(not keeps_clusters_together(x, delta, two_color_codebook) for delta in deltas)
    assert theorem1.brute_force(4, 1, 2, 2) == (failures, 81)


def test_clipped_bound_is_tight_exactly_up_to_205(decided):
    assert decided.tight_when_clipped.tolist() == list(range(1, 206))
    formula = [theorem1.clipped_failure_by_formula(w) for w in range(1, 256)]
    assert decided.first_failure_clipped.tolist() == formula
    assert formula[-1] == 85


def test_a_failing_image_inside_the_range_for_every_w():
    for w in range(1, 256):
        example = theorem1.clipped_counterexample(w)
        moved = example.image + example.delta
        assert 0 <= moved.min()
        assert moved.max() <= 255
        assert np.abs(example.delta).max() <= example.eps
        assert not keeps_clusters_together(example.image, example.delta, two_color_codebook)


def test_clipped_search_agrees_with_brute_force_on_a_small_scale():
    """All clipped perturbations of 2 + 2 pixels near the edges, against the two extremes that decide."""
    for c1, c2, eps in [(0, 3, 1), (0, 4, 1), (251, 255, 1), (0, 255, 85), (0, 255, 84), (1, 8, 2), (249, 255, 2)]:
        ranges = [
            sorted(
                {max(c - eps, 0), c, min(c + eps, 255)}
                | set(range(max(c - eps, 0), min(c + eps, 255) + 1, max(1, eps // 4)))
            )
            for c in (c1, c1, c2, c2)
        ]
        fails = False
        for a, b, c, d in itertools.product(*ranges):
            double_mid = min(a, b, c, d) + max(a, b, c, d)
            fails |= ((2 * a > double_mid) != (2 * b > double_mid)) or ((2 * c > double_mid) != (2 * d > double_mid))
        decided = False
        for a1, b1, a2, b2 in theorem1.extremes_that_decide(np.array(c1), np.array(c2), eps):
            double_mid = min(a1, a2) + max(b1, b2)
            decided |= bool((2 * a1 > double_mid) != (2 * b1 > double_mid)) or bool(
                (2 * a2 > double_mid) != (2 * b2 > double_mid)
            )
        assert decided == fails, (c1, c2, eps)


def test_the_decision_would_notice_a_failure(monkeypatch):
    """With eps <= w/4 in place of eps < w/4 the pairs w = 4 eps fail, and they alone."""
    monkeypatch.setattr(theorem1, "first_integer_not_below_a_quarter", lambda w: w // 4 + 1)
    assert theorem1.decide().failures == 63
