"""Theorem 3: M after S after AC is as accurate on attacked MNIST_G as M is on MNIST_D.

Since AC keeps the two clusters apart (theorem 1), S gives back the black and white image that the attacked one was made
from, pixel for pixel, whatever M is. The check attacks: it looks for one perturbation after which the image differs.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from linocut.errors import InputError
from linocut.theory.definitions import BLACK, WHITE
from linocut.theory.network import SMALL, build, folded
from linocut.theory.training import IntervalTraining, train


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
    if not 0 < white.sum() == (image_d != BLACK).sum() < white.size:
        raise InputError("only an image of black and white pixels, of both, can be attacked")
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


def train_m(images: np.ndarray, labels: np.ndarray, epochs: int, seed: int = 0) -> nn.Sequential:
    """M: a small network trained on MNIST_D, given the images (N, 28, 28) in whole levels."""
    generator = torch.Generator().manual_seed(seed)
    convolutions, hidden = SMALL
    M = build(convolutions, hidden, generator, side=images.shape[-1], classes=int(labels.max()) + 1)
    plan = IntervalTraining(eps=0, codebook=(BLACK, WHITE), epochs=epochs, batch=128, natural_weight=1.0, seed=seed)
    x = torch.from_numpy(np.ascontiguousarray(images))[:, None]
    return folded(train(M, x, torch.from_numpy(labels.astype(np.int64)), plan))


def predictions(M: nn.Sequential, white: np.ndarray) -> np.ndarray:
    """M's classes for black-and-white images (N, H, W), True for white."""
    with torch.no_grad():
        parts = torch.from_numpy(white)[:, None].split(1000)
        return torch.cat([M(part.float()).argmax(1) for part in parts]).numpy()
