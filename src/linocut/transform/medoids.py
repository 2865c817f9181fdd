"""k-medoids in L1 on a sample of pixels: the other way of Chen et al. to make a fixed codebook."""

import numpy as np
import torch

from linocut.errors import InputError
from linocut.transform.fixed import LEVELS, check_size
from linocut.transform.settings import is_whole

SAMPLE = 50_000
MOST_ROUNDS = 100


def sample_pixels(pixels: torch.Tensor, size: int, generator: np.random.Generator) -> np.ndarray:
    """(size, C) uint8: pixels drawn with replacement from images (N,C,H,W), which may be mapped."""
    if not is_whole(size) or size < 1:
        raise InputError(f"a sample has a whole number of pixels, at least one, got {size!r}")
    N, _, H, W = pixels.shape
    image, place = np.divmod(np.sort(generator.integers(0, N * H * W, int(size))), H * W)
    return pixels[torch.from_numpy(image), :, torch.from_numpy(place // W), torch.from_numpy(place % W)].cpu().numpy()


def medoids(sample, k, generator):
    """The codebook (K, C), by population, largest first: assign in L1, take each cluster's medoid, until nothing moves.

    Fewer than k where the sample has fewer colours.
    """
    colors, weight = np.unique(sample, axis=0, return_counts=True)
    colors = colors.astype(np.int16)
    centers = _spread(colors, weight, min(check_size(k), len(colors)), generator)
    for _ in range(MOST_ROUNDS):
        owner = _distances(colors, colors[centers]).argmin(axis=1)
        moved = np.array([_medoid(colors, weight, np.flatnonzero(owner == i)) for i in range(len(centers))])
        if (moved == centers).all():
            break
        centers = moved
    owner = _distances(colors, colors[centers]).argmin(axis=1)
    population = np.bincount(owner, weight, minlength=len(centers))
    return colors[centers[np.argsort(-population, kind="stable")]].astype(np.uint8)


def _spread(colors, weight, k, generator):
    """Indices of k different colours, each drawn with a chance that grows with its distance to those before it."""
    chosen = [int(generator.choice(len(colors), p=weight / weight.sum()))]
    nearest = _distances(colors, colors[chosen])[:, 0]
    while len(chosen) < k:
        chance = weight * nearest.astype(np.float64)
        chosen.append(int(generator.choice(len(colors), p=chance / chance.sum())))
        nearest = np.minimum(nearest, _distances(colors, colors[chosen[-1:]])[:, 0])
    return np.array(chosen)


def _medoid(colors, weight, members):
    """The index of the member with the least sum of L1 distances to all members; the first of equals.

    The sum splits into channels, and a channel has 256 levels: their costs come from one histogram each.
    """
    cost = np.zeros(len(members), dtype=np.int64)
    levels = np.arange(LEVELS)
    far = np.abs(levels[:, None] - levels[None])
    for channel in colors[members].T:
        held = np.bincount(channel, weight[members], minlength=LEVELS).astype(np.int64)
        cost += (far @ held)[channel]
    return members[cost.argmin()]


def _distances(a, b):
    """(len(a), len(b)) L1 distances, channel by channel to stay small."""
    return sum(np.abs(a[:, None, c] - b[None, :, c]) for c in range(a.shape[1]))
