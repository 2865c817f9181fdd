"""The fixed codebook of Chen et al. (2019) in NumPy: one list of colours for a whole data set, meant to be read.

    count every colour of the training images -> take the most frequent -> drop all near it -> repeat

A codebook is (K, C) whole levels, 0..255, in the order the colours were taken. Painting works in eighths of a
level like the rest of this folder, so that an attack's iterates, which are no whole levels, have one result too.
Paper: the fixed codebook it compares with. reference.py holds the adaptive one.
"""

import math

import numpy as np

from linocut.errors import InputError
from linocut.transform.settings import EIGHTHS_PER_LEVEL, is_finite, is_whole

MOST_COLORS = 512
LEVELS = 256
LOOKED_AT = 4096  # colours at a time, of which the first free one is wanted
AT_ONCE = 2**18  # distances held in memory together: they stay in a core's cache


def densest(colors, counts, k, r):
    """The codebook (K, C): greedily the most frequent colour with none taken before within L-infinity r.

    colors: distinct colours (M, C) in the order in which the data shows them, counts (M,). Ties go to the colour
    that was seen first. Fewer than k where no colour is left.
    """
    k, r = check_size(k), check_radius(r)
    colors = colors[np.argsort(-counts, kind="stable")]
    near = np.zeros((LEVELS,) * colors.shape[1], dtype=bool)  # colours within r of one that was taken
    taken: list[np.ndarray] = []
    place = 0
    while len(taken) < k and (place := _first_far(near, colors, place)) < len(colors):
        color = colors[place]
        taken.append(color)
        near[tuple(slice(max(0, int(v) - r), int(v) + r + 1) for v in color)] = True
    return np.array(taken, dtype=np.uint8)


def _first_far(near, colors, place):
    """The first place from `place` on whose colour is not near a taken one; the number of colours if none is left."""
    for start in range(place, len(colors), LOOKED_AT):
        free = np.flatnonzero(~near[tuple(colors[start : start + LOOKED_AT].T)])
        if len(free):
            return start + int(free[0])
    return len(colors)


def grey_levels(k):
    """k evenly spaced grey levels (k, 1), black and white among them: the codebook of colour-depth reduction."""
    if not is_whole(k) or not 2 <= k <= LEVELS:
        raise InputError(f"levels must be a whole number from 2 to {LEVELS}, got {k!r}")
    return np.rint(np.arange(k) * (255 / (k - 1))).astype(np.uint8)[:, None]


def nearest(y, colors):
    """Each pixel's code (H, W) in L-infinity, ties to the earlier; y (C, H, W) and colors (K, C) in eighths."""
    pixels = y.reshape(len(y), -1).T.astype(np.int16)
    step = max(1, AT_ONCE // len(colors))
    label = [
        np.abs(pixels[i : i + step, None] - colors[None].astype(np.int16)).max(axis=2).argmin(axis=1)
        for i in range(0, len(pixels), step)
    ]
    return np.concatenate(label).reshape(y.shape[1:])


def paint(y, colors):
    """The image (C, H, W) in eighths with every pixel replaced by its nearest code."""
    return np.moveaxis(colors[nearest(y, colors)], 2, 0)


def separations(colors):
    """(K,): the L-infinity distance of each colour to its nearest other, in levels; infinite for a single one."""
    planes = colors.T.astype(np.float32)  # one for each channel; eighths of a level are exact
    least = np.empty(len(colors))
    step = max(1, AT_ONCE // len(colors))
    for i in range(0, len(colors), step):
        rows = np.arange(i, min(i + step, len(colors)))
        gap = np.zeros((len(rows), len(colors)), np.float32)
        for plane in planes:
            np.maximum(gap, np.abs(plane[rows, None] - plane), out=gap)
        gap[np.arange(len(rows)), rows] = np.inf
        least[rows] = gap.min(axis=1)
    return least


def in_eighths(colors):
    """Whole levels as int16 eighths."""
    return colors.astype(np.int16) * EIGHTHS_PER_LEVEL


def check_size(k):
    """k, if a codebook can have so many colours."""
    if not is_whole(k) or not 1 <= k <= MOST_COLORS:
        raise InputError(f"k must be a whole number from 1 to {MOST_COLORS}, got {k!r}")
    return int(k)


def check_radius(r):
    """r in whole levels: colours are whole, so the part after the point decides nothing."""
    if not is_finite(r) or not 0 <= r <= 255:
        raise InputError(f"r is a distance in levels, from 0 to 255, got {r!r}; 0.6 of the unit range is 153")
    return math.floor(r)
