"""The objects of the paper's motivation, one short function each (Paper: Motivation, Preliminaries)."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from linocut.errors import InputError

BLACK, WHITE = 0, 255


def fixed_codebook(x: np.ndarray, C: Sequence[int]) -> np.ndarray:
    """FC_C(x): every pixel becomes its nearest colour of C; a tie goes to the smaller colour."""
    colors = np.unique(np.asarray(C, dtype=np.int64))
    if len(colors) == 0 or colors[0] < BLACK or colors[-1] > WHITE:
        raise InputError(f"a codebook is one or more whole colours from 0 to 255, got {list(C)}")
    distance = np.abs(np.asarray(x, dtype=np.int64)[..., None] - colors)
    return colors[distance.argmin(axis=-1)]


def two_color_codebook(x: np.ndarray) -> np.ndarray:
    """AC(x): pixels up to the exact midpoint of minimum and maximum become the minimum, the others the maximum."""
    x = np.asarray(x, dtype=np.int64)
    c1, c2 = x.min(axis=(-2, -1), keepdims=True), x.max(axis=(-2, -1), keepdims=True)
    return np.where(2 * x <= c1 + c2, c1, c2)


def stretch_to_black_and_white(x: np.ndarray) -> np.ndarray:
    """S(x): the lower of exactly two colours becomes 0, the higher 255."""
    colors = np.unique(x)
    if len(colors) != 2:
        raise InputError(f"only an image of exactly two colours can be stretched, got {len(colors)} colours")
    return np.where(x == colors[0], BLACK, WHITE)


def keeps_clusters_together(x: np.ndarray, delta: np.ndarray, T: Callable[[np.ndarray], np.ndarray]) -> bool:
    """CAP: whether pixels that are equal in x are still equal in T(x + delta)."""
    y = T(x + delta)
    return all(len(np.unique(y[x == color])) == 1 for color in np.unique(x))


def mnist_d(images: np.ndarray) -> np.ndarray:
    """MNIST_D: the images in black and white, FC_{0,255} of each."""
    return np.where(np.asarray(images) <= (BLACK + WHITE) // 2, BLACK, WHITE)


def color_pairs(w: int) -> Iterator[tuple[int, int]]:
    """All colours c1, c2 of 0..255 with c2 - c1 >= w."""
    if not 1 <= w <= WHITE:
        raise InputError(f"w is the least distance of two grey levels, from 1 to 255, got {w}")
    return ((c1, c2) for c1 in range(WHITE - w + 1) for c2 in range(c1 + w, WHITE + 1))


def recolored(image_d: np.ndarray, c1: int, c2: int) -> np.ndarray:
    """FC_{c1,c2} of a black and white image: its black becomes c1, its white c2."""
    return np.where(image_d == BLACK, c1, c2)


def mnist_g(images_d: np.ndarray, w: int) -> Iterator[tuple[int, int, int, np.ndarray]]:
    """MNIST_G, lazily: (index of the image, c1, c2, the image in these colours) for every image and pair."""
    for index, image in enumerate(images_d):
        for c1, c2 in color_pairs(w):
            yield index, c1, c2, recolored(image, c1, c2)
