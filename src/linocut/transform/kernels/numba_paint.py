"""Every pixel replaced by its nearest colour, compiled."""

import numpy as np

from linocut.transform.kernels.numba_compiled import compiled
from linocut.transform.kernels.numba_lanes import BLOCK, NOT_SEARCHED, search


@compiled
def paint_chunk(y, first, end, colors, unit, pixels, best, winner, out):
    """Give pixels first..end-1 of one image (C, H*W) the nearest colour of the table, as unit floats."""
    C = len(y)
    label = winner.view(np.uint32)  # never negative: spares a check for each pixel
    for start in range(first, end, BLOCK):
        count = min(BLOCK, end - start)
        for c in range(C):
            y_c, pixels_c = y[c, start : start + count], pixels[c]
            for i in range(count):
                pixels_c[i] = y_c[i]
        for i in range(BLOCK):
            best[i] = NOT_SEARCHED
        search(pixels, 0, colors, best, winner)
        for c in range(C):
            colors_c, out_c = unit[c], out[c, start : start + count]
            for i in range(count):
                out_c[i] = colors_c[label[i]]


@compiled
def paint_chunks(y, palette, num_colors, size, first, end, out):
    """Paint chunks first..end-1 of images (B, C, H*W), each chunk `size` pixels, counted through all images."""
    _, C, n = y.shape
    per_image = (n + size - 1) // size
    pixels = np.zeros((3, BLOCK), dtype=np.float32)
    best, winner = np.empty(BLOCK, dtype=np.float32), np.zeros(BLOCK, dtype=np.int32)
    for chunk in range(first, end):
        b, start = chunk // per_image, chunk % per_image * size
        num = num_colors[b]
        table, unit = np.zeros((4, num), dtype=np.float32), np.empty((C, num), dtype=np.float32)
        for k in range(num):
            for c in range(C):
                value = np.float32(palette[b, k, c])
                table[c, k] = -2 * value
                table[3, k] += value * value
                unit[c, k] = value / np.float32(2040)
        paint_chunk(y[b], start, min(start + size, n), table, unit, pixels, best, winner, out[b])
