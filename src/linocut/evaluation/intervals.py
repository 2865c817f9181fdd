"""Exact binomial intervals and the sign test, without SciPy."""

import math
from functools import lru_cache

from linocut.errors import InputError


@lru_cache(maxsize=4096)  # a report asks for the same few counts again and again
def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval (low, high) of a probability after `successes` in `trials`; (0, 1) when trials is 0.

    Each end is where one tail of the binomial equals (1 - confidence) / 2, found by bisection.
    """
    if not 0 <= successes <= trials:
        raise InputError(f"an interval needs 0 <= successes <= trials, got {successes} of {trials}")
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, got {confidence!r}")
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else _crossing(lambda p: _at_least(successes, trials, p) > tail)
    high = 1.0 if successes == trials else _crossing(lambda p: _at_least(successes + 1, trials, p) > 1 - tail)
    return low, high


def lopsided(gained: int, lost: int) -> bool:
    """Whether two models differ, of which one alone is right on `gained` images and the other alone on `lost`.

    It is so where a fair coin would split them as unevenly less than once in a hundred times. Not once in twenty: a
    table compares many rows in two norms.
    """
    low, high = clopper_pearson(gained, gained + lost, confidence=0.99)
    return gained + lost > 0 and not low <= 0.5 <= high


def _crossing(above) -> float:
    """The p in (0, 1) at which `above`, false then true, turns true; 60 halvings reach float64's grain."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if above(middle):
            high = middle
        else:
            low = middle
    return (low + high) / 2


def _at_least(k: int, n: int, p: float) -> float:
    """P(X >= k) for X ~ Binomial(n, p), summed over the shorter tail so that small values keep their digits."""
    if p <= 0 or p >= 1:
        return float(p >= 1 or k == 0)
    if k > n * p:
        return _tail(k, n, p)
    return 1 - _tail(n - k + 1, n, 1 - p)


def _tail(k: int, n: int, p: float) -> float:
    """The sum of the binomial terms k..n for k above the mean: they fall, so it stops when they no longer count."""
    if k > n:
        return 0.0
    log_term = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    term = math.exp(log_term + k * math.log(p) + (n - k) * math.log1p(-p))
    total, odds = 0.0, p / (1 - p)
    for i in range(k, n + 1):
        total += term
        term *= (n - i) / (i + 1) * odds
        if term < total * 1e-17:
            break
    return total
