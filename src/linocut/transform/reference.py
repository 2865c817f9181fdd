"""The transform in NumPy integers: one image at a time, slow, and meant to be read.

Every other backend must equal this file bit for bit. It follows the paper from pixels to pixels:

    enter -> edges -> kernel choice -> blur -> thumbnail -> bins -> Lloyd -> separate -> assign -> leave

All values between `enter` and `leave` are whole eighths of a grey level, 0..2040. Whole numbers, because
k-means with a greedy choice behind it is chaotic: the smallest rounding difference gives another palette.
An image is an array of shape (C, H, W), C = 1 or 3; "index" of a cluster is its place in bin order.
"""

from typing import NamedTuple

import numpy as np

from linocut.transform.settings import FULL_SCALE, BlurRule, PaletteRule


class Palette(NamedTuple):
    """The kept colours (K, C) in eighths, in the order they were accepted, and their thumbnail populations (K,)."""

    colors: np.ndarray
    population: np.ndarray


def enter(x):
    """Unit floats -> eighths: one float32 multiply, then round half to even. NaN becomes 0."""
    x = np.clip(np.nan_to_num(x.astype(np.float32), nan=0.0, posinf=1.0, neginf=0.0), 0, 1)
    return np.rint(x * np.float32(FULL_SCALE)).astype(np.int64)


def leave(image):
    """Eighths -> unit floats: one correctly rounded float32 division."""
    return image.astype(np.float32) / np.float32(FULL_SCALE)


# --------------------------------------------------------------------------------- adaptive blur (AB)


def reflect(length, pad):
    """For each position from -pad to length+pad-1, the position it mirrors (reflect-101: the edge is not repeated)."""
    if length == 1:
        return np.zeros(1 + 2 * pad, dtype=np.int64)
    period = 2 * (length - 1)
    positions = np.arange(-pad, length + pad) % period
    return np.minimum(positions, period - positions)


def edge_strength(x):
    """gx² + gy² of the 3x3 Sobel filters, for each channel by itself (Paper: Computing Edges)."""
    _, H, W = x.shape
    p = x[:, reflect(H, 1)][:, :, reflect(W, 1)]
    left, right = p[:, :, :-2], p[:, :, 2:]
    above, below = p[:, :-2], p[:, 2:]
    gx = (right - left)[:, :-2] + 2 * (right - left)[:, 1:-1] + (right - left)[:, 2:]
    gy = (below - above)[:, :, :-2] + 2 * (below - above)[:, :, 1:-1] + (below - above)[:, :, 2:]
    return gx**2 + gy**2


def choose_kernel(strength, rule: BlurRule):
    """How many thresholds each pixel exceeds, strictly; 0 is the largest kernel (Paper: Kernel Thresholding)."""
    level = np.zeros(strength.shape, dtype=np.uint8)
    for limit in rule.limits:
        level += strength > limit
    return level


def gaussian_weights(size):
    """OpenCV's default Gaussian of this width as integers, and the s for which they sum to 2^s."""
    small = {
        1: ([1], 0),
        3: ([1, 2, 1], 2),
        5: ([1, 4, 6, 4, 1], 4),
        7: ([2, 7, 14, 18, 14, 7, 2], 6),
        9: ([4, 13, 30, 51, 60, 51, 30, 13, 4], 8),
    }
    if size in small:
        return small[size]
    half = (size - 1) // 2
    sigma = 0.3 * ((size - 1) / 2 - 1) + 0.8
    bell = np.exp(-((np.arange(size) - half) ** 2) / (2 * sigma * sigma))
    weights = [round(float(w)) for w in 1024 * bell / bell.sum()]
    weights[half] = 1024 - (sum(weights) - weights[half])
    return weights, 10


def gaussian_blur(x, size):
    """The image blurred by one kernel; both axes are summed before the one rounding."""
    weights, s = gaussian_weights(size)
    if size == 1:
        return x
    _, H, W = x.shape
    half = size // 2
    rows = x[:, reflect(H, half)]
    rows = sum(w * rows[:, i : i + H] for i, w in enumerate(weights))
    both = rows[:, :, reflect(W, half)]
    both = sum(w * both[:, :, i : i + W] for i, w in enumerate(weights))
    return (both + (1 << (2 * s - 1))) >> (2 * s)


def adaptive_blur(x, rule: BlurRule):
    """Each pixel and channel from the blur its edge strength asks for; edges are those of x, before any blur."""
    level = choose_kernel(edge_strength(x), rule)
    blurred = np.stack([gaussian_blur(x, size) for size in rule.kernel_sizes])
    return np.take_along_axis(blurred, level[None].astype(np.int64), axis=0)[0], level


# ----------------------------------------------------------------------------- adaptive codebook (AC)


def overlaps(length, cells):
    """(cells, length): how much of each pixel lies in each cell, in 1/cells of a pixel; every row sums to length."""
    left = np.maximum(np.arange(length) * cells, (np.arange(cells) * length)[:, None])
    right = np.minimum((np.arange(length) + 1) * cells, ((np.arange(cells) + 1) * length)[:, None])
    return np.maximum(right - left, 0)


def thumbnail(y, size):
    """The image shrunk by exact area weights so that no axis is longer than `size`; never enlarged."""
    total, n = y, 1
    for axis, length in ((1, y.shape[1]), (2, y.shape[2])):
        if length > size:
            total = np.moveaxis(np.tensordot(overlaps(length, size), total, axes=(1, axis)), 0, axis)
            n *= length
    return (2 * total + n) // (2 * n)


def occupied_bins(pixels, bin_levels):
    """Centres of the cubes of side `bin_levels` that hold a pixel, first channel major (Paper: b = 16)."""
    cubes = np.unique(pixels // (8 * bin_levels), axis=0)
    return 8 * bin_levels * cubes + 4 * bin_levels


def squared_distances(a, b):
    """(len(a), len(b)) squared Euclidean distances."""
    return ((a[:, None] - b[None]) ** 2).sum(axis=2)


def nearest(pixels, colors):
    """The index of each pixel's nearest colour; ties go to the lowest index."""
    return squared_distances(pixels, colors).argmin(axis=1)


def lloyd(pixels, centers, steps):
    """Centres after `steps` rounds of assign and average, and the populations of the last assignment.

    An empty cluster keeps its centre. Zero steps means one assignment and no average.
    """
    for _ in range(steps):
        owner = nearest(pixels, centers)
        population = np.bincount(owner, minlength=len(centers))
        total = np.zeros_like(centers)
        np.add.at(total, owner, pixels)
        n = np.maximum(population, 1)[:, None]
        moved = np.where(population[:, None] > 0, (2 * total + n) // (2 * n), centers)
        if (moved == centers).all():
            return centers, population  # every further round would be this one again
        centers = moved
    if steps == 0:
        population = np.bincount(nearest(pixels, centers), minlength=len(centers))
    return centers, population


def separate(centers, population, rule: PaletteRule):
    """Greedily keep colours at least `separation` apart (Paper: d = 3 eps, and the footnote on MNIST)."""
    index = np.flatnonzero(population)
    if rule.by_population:
        index = index[np.argsort(-population[index], kind="stable")]
    distance = squared_distances(centers, centers)
    far = distance >= rule.separation**2
    if rule.at_least_two and len(index) > 1:
        has_partner = [i for i in index if any(far[i, j] for j in index if j != i)]
        if not has_partner:
            return farthest_pair(np.sort(index), distance)
        index = np.array(has_partner)
    kept: list[int] = []
    for i in index:
        if all(far[i, j] for j in kept):
            kept.append(int(i))
    return np.array(kept)


def farthest_pair(index, distance):
    """The two clusters farthest apart, lowest indices first."""
    best = distance[np.ix_(index, index)]
    np.fill_diagonal(best, -1)  # two clusters may round to one colour; a pair is still two of them
    i, j = np.unravel_index(best.argmax(), best.shape)
    return index[np.sort([i, j])]


def find_palette(y, rule: PaletteRule) -> Palette:
    """The colours of one image (Paper: Selecting an Adaptive Codebook)."""
    small = thumbnail(y, rule.thumbnail_size)
    pixels = small.reshape(len(y), -1).T
    centers, population = lloyd(pixels, occupied_bins(pixels, rule.bin_levels), rule.lloyd_steps)
    kept = separate(centers, population, rule)
    return Palette(centers[kept], population[kept])


def paint(y, colors):
    """The image with every pixel replaced by its nearest colour, and which colour that was."""
    pixels = y.reshape(len(y), -1).T
    step = max(1, 2**22 // len(colors))
    label = np.concatenate([nearest(pixels[i : i + step], colors) for i in range(0, len(pixels), step)])
    return colors[label].T.reshape(y.shape), label.reshape(y.shape[1:])


def essential_features(x, blur: BlurRule, palette: PaletteRule):
    """T(x) for one image of unit floats: adaptive blur, then the image's own codebook."""
    y, _ = adaptive_blur(enter(x), blur)
    painted, _ = paint(y, find_palette(y, palette).colors)
    return leave(painted)
