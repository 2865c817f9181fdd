import math

import pytest

from linocut.errors import InputError
from linocut.evaluation.intervals import clopper_pearson, lopsided


def test_equals_the_beta_quantiles(count):
    beta = pytest.importorskip("scipy.stats").beta
    for n in (1, 2, 7, 100, 500, 10_000)[: count(5, 6)]:
        for k in sorted({0, 1, n // 3, n // 2, n - 1, n}):
            low, high = clopper_pearson(k, n)
            assert low == pytest.approx(beta.ppf(0.025, k, n - k + 1) if k else 0.0, abs=1e-11)
            assert high == pytest.approx(beta.ppf(0.975, k + 1, n - k) if k < n else 1.0, abs=1e-11)


def test_known_values():
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    low, high = clopper_pearson(0, 100)
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025 ** (1 / 100), abs=1e-12)
    low, high = clopper_pearson(250, 500)
    assert (high - low) / 2 == pytest.approx(0.0447, abs=1e-4)


def test_another_confidence_is_wider():
    assert clopper_pearson(5, 10, 0.99)[0] < clopper_pearson(5, 10, 0.9)[0]


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (1, 0)])
def test_refuses_impossible_counts(k, n):
    with pytest.raises(InputError, match="successes"):
        clopper_pearson(k, n)


def test_refuses_an_impossible_confidence():
    with pytest.raises(InputError, match="confidence"):
        clopper_pearson(1, 2, 1.0)


@pytest.mark.parametrize(
    ("gained", "lost", "differ"),
    [(0, 0, False), (7, 0, False), (8, 0, True), (0, 8, True), (71, 22, True), (24, 11, False)],
)
def test_two_models_differ_where_a_fair_coin_would_hardly_split_the_images_so(gained, lost, differ):
    assert lopsided(gained, lost) is differ
    n, k = gained + lost, min(gained, lost)
    chance = min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n)
    assert differ == (chance < 0.01)
