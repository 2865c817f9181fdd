"""Theorem 3: M after S after AC is as accurate on attacked MNIST_G as M is on MNIST_D.

Since AC keeps the two clusters apart (theorem 1), S gives back the black and white image that the attacked one was made
from, pixel for pixel, whatever M is. The check attacks: it looks for one perturbation after which the image differs.
"""

from typing import NamedTuple

import numpy as np

from linocut.theory.definitions import BLACK, WHITE


class Recovery(NamedTuple):
    """How often an attacked image was not given back, and how many perturbations were tried."""

    failures: int
    tried: int


def restored(x: np.ndarray) -> np.ndarray:
    """S(AC(x)) for a stack of images (..., H, W) as booleans, True for white."""
    double_mid = x.min(axis=(-2, -1), keepdims=True) + x.max(axis=(-2, -1), keepdims=True)
    return 2 * x > double_mid


def worst_perturbations(white: np.ndarray, eps: int) -> np.ndarray:
    """The two perturbations that bring the midpoint nearest to a cluster, and the four that move it as a whole.

    One pixel of the spreading cluster goes the other way; `white` is (H, W), True where the image is white.
    """
    spread_white = np.where(white, -eps, eps)
    spread_white[np.unravel_index(white.argmax(), white.shape)] = eps
    spread_black = np.where(white, -eps, eps)
    spread_black[np.unravel_index((~white).argmax(), white.shape)] = -eps
    whole = [np.where(white, s * eps, t * eps) for s in (-1, 1) for t in (-1, 1)]
    return np.stack([spread_white, spread_black, *whole])


def attack(image_d: np.ndarray, c1: int, c2: int, eps: int, random: int, dice: np.random.Generator) -> Recovery:
    """Tries the worst and `random` random perturbations of one image of MNIST_G; half of those are all +-eps."""
    white = image_d == WHITE
    assert white.any() and (image_d == BLACK).any()
    x = np.where(white, c2, c1).astype(np.int16)
    failures = int((restored(x + worst_perturbations(white, eps).astype(np.int16)) != white).any(axis=(1, 2)).sum())
    tried = 6
    for start in range(0, random, 1000):
        shape = (min(1000, random - start), *white.shape)
        if (start // 1000) % 2:
            delta = dice.integers(-eps, eps, size=shape, dtype=np.int8, endpoint=True)
        else:
            delta = ((2 * dice.integers(0, 2, size=shape, dtype=np.int8) - 1) * eps).astype(np.int8)
        failures += int((restored(x + delta) != white).any(axis=(1, 2)).sum())
        tried += shape[0]
    return Recovery(failures, tried)
