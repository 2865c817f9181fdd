"""What no network behind a fixed two-colour codebook can exceed, and which codebook is the best for a set of images."""

from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor

from linocut.theory.certificate import span
from linocut.theory.definitions import WHITE


class BestFixed(NamedTuple):
    """A codebook of two colours and the certified accuracy (0..1) that no network behind it exceeds."""

    codebook: tuple[int, int]
    ceiling: float


def ceiling(lowest: Tensor, highest: Tensor, labels: Tensor, eps: float | Fraction, codebook: tuple[int, int]) -> float:
    """The largest share of images, given by their extreme levels, that any network can be certified on behind it.

    An image that can be turned all black shares that black image with others of its kind, of which a network can
    be right on one class alone; the same for all white. All other images are counted as certified.
    """
    choice = span(lowest, highest, eps, codebook)
    turns_black = highest <= choice.last_max
    turns_white = lowest >= choice.first_min
    free = int((~(turns_black | turns_white)).sum())
    for turned in (turns_black, turns_white):
        if turned.any():
            free += int(torch.bincount(labels[turned]).max())
    return min(1.0, free / len(labels))


def best_fixed(images: Tensor, labels: Tensor, eps: float | Fraction) -> BestFixed:
    """The two-colour codebook with the highest ceiling, tried at every split: nothing else of it matters."""
    splits = [(0, c) for c in range(1, WHITE + 1)] + [(c, WHITE) for c in range(1, WHITE)]
    lowest, highest = images.flatten(1).amin(1), images.flatten(1).amax(1)
    found = [BestFixed(C, ceiling(lowest, highest, labels, eps, C)) for C in splits]
    return max(found, key=lambda best: best.ceiling)
