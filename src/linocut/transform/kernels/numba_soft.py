"""The slope of the soft codebook, compiled.

Distances are whole eighths, so a weight is looked up, not computed. Two rounds over the colours: the first finds each
pixel's least distance, the second adds up, relative to it, what the slope needs. So no memory is taken for each pixel
and colour. All numbers of a block lie in one array at places known beforehand: only then does the compiler see that
they do not overlap, and makes vectors of the inner loops. The look-up is a loop of its own, as it has none.
"""

import numpy as np

from linocut.transform.kernels.numba_compiled import compiled

BLOCK = 256
FAR = np.float32(1e6)  # farther than any colour
NONE, ONE = np.float32(0), np.float32(1)
# Where a block keeps its numbers. Of each channel: pixels, gradients, sums of weight * pull * slope and weight * slope.
P0, P1, P2, G0, G1, G2, A0, A1, A2, B0, B1, B2 = (place * BLOCK for place in range(12))
LEAST, WEIGHT, TOTAL, PULLED = (place * BLOCK for place in range(12, 16))
PLACES = 16


@compiled
def least_distances(block, colors, count):
    """The L-infinity distance of each pixel to the nearest of the first `count` colours (K, 3)."""
    block[LEAST : LEAST + BLOCK] = FAR
    for k in range(count):
        c0, c1, c2 = colors[k, 0], colors[k, 1], colors[k, 2]
        for i in range(BLOCK):
            distance = max(max(abs(block[P0 + i] - c0), abs(block[P1 + i] - c1)), abs(block[P2 + i] - c2))
            block[LEAST + i] = min(block[LEAST + i], distance)


@compiled
def add_up(block, colors, count, weights, index):
    """Total weight, weighted pull, and the sums of each channel, over the first `count` colours.

    A pull is what a little more of a colour is worth to the gradient, here relative to the pixel: what all pulls have
    in common does not change the slope.
    """
    block[A0 : B2 + BLOCK] = NONE
    block[TOTAL : PULLED + BLOCK] = NONE
    for k in range(count):
        c0, c1, c2 = colors[k, 0], colors[k, 1], colors[k, 2]
        for i in range(BLOCK):
            distance = max(max(abs(block[P0 + i] - c0), abs(block[P1 + i] - c1)), abs(block[P2 + i] - c2))
            index[i] = np.int32(distance - block[LEAST + i])
        for i in range(BLOCK):
            block[WEIGHT + i] = weights[np.uint32(index[i])]
        for i in range(BLOCK):
            d0, d1, d2 = block[P0 + i] - c0, block[P1 + i] - c1, block[P2 + i] - c2
            m0, m1, m2 = abs(d0), abs(d1), abs(d2)
            distance = max(max(m0, m1), m2)
            weight = block[WEIGHT + i]
            pull = -(block[G0 + i] * d0 + block[G1 + i] * d1 + block[G2 + i] * d2)
            h0 = ONE if m0 == distance else NONE
            h1 = ONE if m1 == distance else NONE
            h2 = ONE if m2 == distance else NONE
            share = (weight if distance > NONE else NONE) / (h0 + h1 + h2)
            e0 = share * (h0 if d0 > NONE else -h0)
            e1 = share * (h1 if d1 > NONE else -h1)
            e2 = share * (h2 if d2 > NONE else -h2)
            block[TOTAL + i] += weight
            block[PULLED + i] += weight * pull
            block[A0 + i] += e0 * pull
            block[A1 + i] += e1 * pull
            block[A2 + i] += e2 * pull
            block[B0 + i] += e0
            block[B1 + i] += e1
            block[B2 + i] += e2


@compiled
def soft_chunks(grad, y, palette, num_colors, weights, rate, size, first, end, out):
    """Chunks first..end-1 of images (B, C, H*W), each `size` pixels, counted through all images.

    palette: eighths (B, K, C). weights: exp(-rate * d) for every distance d in eighths.
    """
    _, C, n = y.shape
    per_image = (n + size - 1) // size
    block, index = np.zeros(PLACES * BLOCK, dtype=np.float32), np.zeros(BLOCK, dtype=np.int32)
    colors = np.zeros((palette.shape[1], 3), dtype=np.float32)
    for chunk in range(first, end):
        b, begin = chunk // per_image, chunk % per_image * size
        stop, count = min(begin + size, n), num_colors[b]
        for k in range(count):
            for c in range(C):
                colors[k, c] = palette[b, k, c]
        for start in range(begin, stop, BLOCK):
            here = min(BLOCK, stop - start)
            for c in range(C):
                for i in range(here):
                    block[P0 + c * BLOCK + i] = y[b, c, start + i]
                    block[G0 + c * BLOCK + i] = grad[b, c, start + i]
            least_distances(block, colors, count)
            add_up(block, colors, count, weights, index)
            for c in range(C):
                for i in range(here):
                    total = block[TOTAL + i]
                    mean = block[PULLED + i] / total
                    slope = block[A0 + c * BLOCK + i] - mean * block[B0 + c * BLOCK + i]
                    out[b, c, start + i] = -rate * slope / total
