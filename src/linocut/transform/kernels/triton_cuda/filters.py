"""Tables for the blur's kernels: each filter of an axis as a matrix, mirrored borders folded in, kept on the device.

A side of at most LARGEST pixels is one window. A longer one is cut into windows that overlap by twice a margin, as
wide as the widest filter reaches; what a window computes in its margins is thrown away. Row p, column q of a matrix
says how much of position q goes into position p, both counted from the window's start; positions outside the side
hold zeros. So no kernel ever thinks about borders, and the transpose reads the same tables.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from linocut.transform.reference import gaussian_weights, reflect
from linocut.transform.settings import BlurRule

LARGEST = 64
WIDEST = 57  # of the kernels that a window has room for; wider ones must find a side that is one window
SOBEL = ((1, 2, 1), (-1, 0, 1))


class Axis(NamedTuple):
    """One axis cut into windows, and its filters (windows, filters, size, size) float16: blurs, then Sobel's two."""

    size: int
    margin: int
    windows: int
    filters: Tensor


@lru_cache(maxsize=256)
def fits(rule: BlurRule, height: int, width: int) -> bool:
    """Whether tables can do this blur exactly: no window too small, no weight that float16 cannot hold."""
    room = max(height, width) <= LARGEST or rule.kernel_sizes[0] <= WIDEST
    return room and all(min(gaussian_weights(size)[0]) >= 0 for size in rule.kernel_sizes)


@lru_cache(maxsize=256)
def shifts(rule: BlurRule) -> tuple[int, ...]:
    """For each kernel the s for which its weights sum to 2^s."""
    return tuple(gaussian_weights(size)[1] for size in rule.kernel_sizes)


@lru_cache(maxsize=256)
def axis(rule: BlurRule, length: int, device: torch.device) -> Axis:
    """The windows and filters of one axis. The first call for a length waits for the device once; later ones do not."""
    size, margin, windows = LARGEST, max(rule.kernel_sizes[0] // 2, 1), 1
    if length <= LARGEST:
        size, margin = max(16, 1 << (length - 1).bit_length()), 0
    else:
        windows = -(-length // (size - 2 * margin))
    rows = [*(tuple(gaussian_weights(k)[0]) for k in rule.kernel_sizes), *SOBEL]
    filters = np.zeros((windows, len(rows), size, size), dtype=np.float16)
    for window in range(windows):
        first = window * (size - 2 * margin) - margin
        for n, row in enumerate(rows):
            filters[window, n] = matrix(row, length, first, size)
    # In a thread of its own: a table outlives the call, so it must not come from the memory of a graph being made.
    with ThreadPoolExecutor(1) as aside:
        return Axis(size, margin, windows, aside.submit(to_device, filters, device).result())


def matrix(weights: tuple[int, ...], length: int, first: int, size: int) -> np.ndarray:
    """(size, size): a filter's mirrored weights between the positions from `first` on."""
    part = np.zeros((size, size))
    half = len(weights) // 2
    mirrored = reflect(length, half)
    p = np.arange(max(first, 0), min(first + size, length))
    for i, weight in enumerate(weights):
        q = mirrored[p + i]
        near = (q >= first) & (q < first + size)
        np.add.at(part, (p[near] - first, q[near] - first), weight)
    return part


def to_device(table: np.ndarray, device: torch.device) -> Tensor:
    """The table there, once it has arrived."""
    copy = torch.from_numpy(table).to(device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return copy
