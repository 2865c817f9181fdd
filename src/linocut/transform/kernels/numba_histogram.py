"""Colours counted, compiled."""

from linocut.transform.kernels.numba_compiled import compiled


@compiled
def count_colors(pixels, counts, order, distinct):
    """How many colours are known after these uint8 pixels (N, C, H*W); counts and order are updated.

    A colour is one number, its first channel major; `order` lists the colours as they are first seen.
    """
    N, C, n = pixels.shape
    for b in range(N):
        for i in range(n):
            color = 0
            for c in range(C):
                color = (color << 8) | pixels[b, c, i]
            if counts[color] == 0:
                order[distinct] = color
                distinct += 1
            counts[color] += 1
    return distinct
