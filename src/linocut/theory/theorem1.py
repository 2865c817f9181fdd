"""Theorem 1: AC keeps clusters together for every perturbation of fewer than w/4 levels.

The reduction. Let P1 and P2 be the pixels of the two colours c1 and c2 = c1 + g, g >= w. After a perturbation
P1 spans a1..b1 and P2 spans a2..b2. AC compares every pixel with one number, so all of P1 goes one way iff its
two extremes do, and likewise P2: the outcome depends on (a1, b1, a2, b2) alone. While g >= 2 eps the smallest
pixel is a1 and the largest b2, and AC tells the clusters apart iff

    P1 goes low:    2 b1 <= a1 + b2    that is    2 beta1 - alpha1 - beta2  <= g
    P2 goes high:   2 a2 >  a1 + b2    that is    alpha1 + beta2 - 2 alpha2 <  g

where the Greek letters are the extremes less their own colour, each in -eps..eps with alpha <= beta. Neither
left side contains c1 or g. So for each eps we take the largest of both over ALL extremes, once, and compare
it with every gap: that covers every image of MNIST_G, of any size, and every perturbation.
"""

from typing import NamedTuple

import numpy as np

from linocut.theory.definitions import WHITE, keeps_clusters_together, two_color_codebook


class Counterexample(NamedTuple):
    """An image and a perturbation of at most eps levels after which equal pixels part."""

    image: np.ndarray
    delta: np.ndarray
    eps: int


class Theorem1(NamedTuple):
    """What was decided: how many pairs of w and eps were tried and how many of them fail, over how many extremes.

    For each w (index w - 1) the first whole eps at which CAP is seen to fail, in any values and inside 0..255.
    """

    pairs: int
    failures: int
    extremes: int
    first_failure: np.ndarray
    first_failure_clipped: np.ndarray

    @property
    def tight_when_clipped(self) -> np.ndarray:
        """The w for which the bound stays tight when perturbed values must stay within 0..255."""
        return np.flatnonzero(self.first_failure == self.first_failure_clipped) + 1


def largest_over_all_extremes(eps: int) -> tuple[int, int, int]:
    """The largest 2 beta1 - alpha1 - beta2, the largest alpha1 + beta2 - 2 alpha2, and how many cases were tried."""
    offsets = np.arange(-eps, eps + 1, dtype=np.int16)
    alpha, beta = np.meshgrid(offsets, offsets, indexing="ij")
    ordered = alpha <= beta
    alpha, beta = alpha[ordered], beta[ordered]
    low = (2 * beta - alpha)[:, None] - offsets  # offsets stand for beta2
    high = (beta - 2 * alpha)[:, None] + offsets  # and here for alpha1
    return int(low.max()), int(high.max()), low.size + high.size


def first_integer_not_below_a_quarter(w: int) -> int:
    """The smallest whole eps that theorem 1 does not cover: eps >= w/4."""
    return -(-w // 4)


def decide() -> Theorem1:
    """Theorem 1 for every w and every eps < w/4, and the first failure for every w, inside 0..255 and out of it."""
    pairs = failures = extremes = 0
    first = np.zeros(WHITE, dtype=np.int64)
    worst = []
    for eps in range(first_integer_not_below_a_quarter(WHITE)):
        low, high, cases = largest_over_all_extremes(eps)
        worst.append((low, high))
        extremes += cases
    for w in range(1, WHITE + 1):
        for eps in range(first_integer_not_below_a_quarter(w)):
            low, high = worst[eps]
            gaps = np.arange(w, WHITE + 1)
            assert w >= 2 * eps, "the reduction needs it"
            pairs += 1
            failures += not ((low <= gaps).all() and (high < gaps).all())
        example = counterexample(w)
        fails = not keeps_clusters_together(example.image, example.delta, two_color_codebook)
        first[w - 1] = example.eps if fails else 0
    return Theorem1(pairs, failures, extremes, first, first_failures_when_clipped())


def counterexample(w: int) -> Counterexample:
    """The limit of theorem 1: at the first whole eps >= w/4 the white cluster falls apart.

    P1 moves up as one, P2 spreads both ways; the lowest of P2 then lies at or under the midpoint.
    """
    eps = first_integer_not_below_a_quarter(w)
    return Counterexample(np.array([[0, 0], [w, w]]), np.array([[eps, eps], [-eps, eps]]), eps)


def extremes_that_decide(c1: np.ndarray, c2: np.ndarray, eps: int) -> list[tuple[np.ndarray, ...]]:
    """The only two (a1, b1, a2, b2) that need trying when values are clipped to 0..255.

    2 b1 - min(a1, a2) - max(b1, b2) grows with b1 and falls with the others; 2 a2 - min(a1, a2) - max(b1, b2)
    grows with a2 and falls with the others. So P1 is hardest to keep low when it spreads while P2 sinks, and
    P2 is hardest to keep high when it spreads while P1 rises; clipping changes the ends, not the order. In both the
    lowest pixel is of P1 and the highest of P2, so a cluster that does not part is on its own side.
    """
    bottom1, top1 = np.maximum(c1 - eps, 0), np.minimum(c1 + eps, WHITE)
    bottom2, top2 = np.maximum(c2 - eps, 0), np.minimum(c2 + eps, WHITE)
    return [(bottom1, top1, bottom2, bottom2), (top1, top1, bottom2, top2)]


def first_failures_when_clipped() -> np.ndarray:
    """For each w the smallest whole eps at which some pair of colours fails although all values stay in 0..255."""
    c1, c2 = np.triu_indices(WHITE + 1, k=1)
    fails_from = np.full(len(c1), WHITE)
    for eps in range(WHITE, -1, -1):
        for a1, b1, a2, b2 in extremes_that_decide(c1, c2, eps):
            double_mid = np.minimum(a1, a2) + np.maximum(b1, b2)
            parted = ((2 * a1 <= double_mid) != (2 * b1 <= double_mid)) | (
                (2 * a2 <= double_mid) != (2 * b2 <= double_mid)
            )
            fails_from[parted] = eps
    return np.array([fails_from[c2 - c1 >= w].min() for w in range(1, WHITE + 1)])


def clipped_failure_by_formula(w: int) -> int:
    """The formula that the search confirms: the first failure is max(ceil(w/4), ceil((2w - 255)/3))."""
    return max(first_integer_not_below_a_quarter(w), -(-(2 * w - WHITE) // 3))


def clipped_counterexample(w: int) -> Counterexample:
    """The same limit inside 0..255: colours 0 and w, with the white cluster's upper end clipped."""
    eps = clipped_failure_by_formula(w)
    up = min(eps, WHITE - w)
    return Counterexample(np.array([[0, 0], [w, w]]), np.array([[eps, eps], [-eps, up]]), eps)


def brute_force(w: int, eps: int, black: int, white: int) -> tuple[int, int]:
    """(failures, perturbations tried): every perturbation of one image of so many black and white pixels."""
    x = np.array([0] * black + [w] * white)
    steps = np.arange(-eps, eps + 1)
    y = np.stack(np.meshgrid(*[steps + value for value in x], indexing="ij"), axis=-1).reshape(-1, len(x))
    high = 2 * y > (y.min(axis=1) + y.max(axis=1))[:, None]
    parted = [part.any(axis=1) & ~part.all(axis=1) for part in (high[:, :black], high[:, black:])]
    return int((parted[0] | parted[1]).sum()), len(y)
