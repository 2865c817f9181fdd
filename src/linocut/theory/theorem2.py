"""Theorem 2: for a fixed codebook some image of MNIST_G falls apart under a perturbation of one level.

FC splits 0..255 into runs of levels, one a colour. A level can be pushed over a border by one level iff it is
the last level m of a run or the first level m + 1 of the next; it occurs in an image of MNIST_G iff it has a
partner at least w away: c <= 255 - w or c >= w. So NO image falls apart iff every border m has both m and
m + 1 strictly between 255 - w and w, that is 256 - w <= m <= w - 2. That needs w >= 129: up to w = 128
the theorem holds for every codebook of two colours or more; a codebook of one colour has no border.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linocut.theory.definitions import WHITE, fixed_codebook, keeps_clusters_together
from linocut.theory.theorem1 import Counterexample


class Theorem2(NamedTuple):
    """What was decided for the two-colour codebooks: `escapes[i, w - 1]`, codebook i being low[i], high[i]."""

    low: np.ndarray
    high: np.ndarray
    escapes: np.ndarray

    def first_escape(self, low: int, high: int) -> int | None:
        """The smallest w from which this codebook has no failing image, or None."""
        row = self.escapes[np.flatnonzero((self.low == low) & (self.high == high))[0]]
        return int(row.argmax()) + 1 if row.any() else None


def borders(C: Sequence[int]) -> np.ndarray:
    """The last level of each colour's run but the highest colour's (a tie goes to the smaller colour)."""
    colors = np.unique(np.asarray(C, dtype=np.int64))
    return (colors[:-1] + colors[1:]) // 2


def escapes(C: Sequence[int], w: int) -> bool:
    """Whether no image of MNIST_G with this w breaks CAP within one level under FC_C."""
    m = borders(C)
    return bool(((m >= WHITE + 1 - w) & (m <= w - 2)).all())


def failing_image(C: Sequence[int], w: int) -> Counterexample | None:
    """An image of MNIST_G whose equal pixels part under FC_C after one level, or None where there is none."""
    for m in borders(C):
        for color, step in ((m, 1), (m + 1, -1)):
            other = color + w if color + w <= WHITE else color - w
            if other >= 0:
                image = np.array([[color, color], [other, other]])
                return Counterexample(image, np.array([[0, step], [0, 0]]), 1)
    return None


def is_verified(C: Sequence[int], w: int, example: Counterexample) -> bool:
    """Whether the image lies in MNIST_G for this w, moves at most one level, and does break CAP."""
    colors = np.unique(example.image)
    in_mnist_g = len(colors) == 2 and colors[1] - colors[0] >= w and colors[0] >= 0 and colors[1] <= WHITE
    parts = not keeps_clusters_together(example.image, example.delta, lambda x: fixed_codebook(x, C))
    return bool(in_mnist_g and np.abs(example.delta).max() <= 1 and parts)


def decide() -> Theorem2:
    """For all 32,640 two-colour codebooks and all 255 w, from FC itself and not from the formula above."""
    low, high = np.triu_indices(WHITE + 1, k=1)
    levels = np.arange(WHITE + 1)
    goes_high = np.abs(levels - high[:, None]) < np.abs(levels - low[:, None])
    changes = goes_high[:, 1:] != goes_high[:, :-1]
    pushable = np.pad(changes, ((0, 0), (1, 0))) | np.pad(changes, ((0, 0), (0, 1)))
    lowest = pushable.argmax(axis=1)[:, None]
    highest = WHITE - pushable[:, ::-1].argmax(axis=1)[:, None]
    w = np.arange(1, WHITE + 1)
    found = (lowest <= WHITE - w) | (highest >= w)
    return Theorem2(low, high, ~found)
