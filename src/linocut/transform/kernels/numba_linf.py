"""Every pixel replaced by its nearest code in L-infinity, compiled.

A direct search over all codes, in whole numbers of 16 bits: the compiler turns the inner loop into vectors of 16 or
32 pixels, and a block's running best stays in the first cache. No table, so pixels between levels cost the same.
"""

import numpy as np

from linocut.transform.kernels.numba_compiled import compiled

BLOCK = 512
UNSEEN = np.int16(32767)  # farther than any code


@compiled
def search(pixels, codes, best, owner):
    """Let every code (K, 3) compete for one block of pixels (3, BLOCK); ties stay with the earlier code."""
    p0, p1, p2 = pixels[0], pixels[1], pixels[2]
    best[:] = UNSEEN
    for k in range(len(codes)):
        c0, c1, c2, index = codes[k, 0], codes[k, 1], codes[k, 2], np.int16(k)
        for i in range(BLOCK):
            # Cast at each step: Numba widens to 64 bits, which would leave room for a quarter of the lanes.
            d0 = np.int16(abs(np.int16(p0[i] - c0)))
            d1 = np.int16(abs(np.int16(p1[i] - c1)))
            d2 = np.int16(abs(np.int16(p2[i] - c2)))
            distance = max(max(d0, d1), d2)
            nearer = distance < best[i]
            best[i] = distance if nearer else best[i]
            owner[i] = index if nearer else owner[i]


@compiled
def paint_chunks(y, codes, unit, size, first, end, out):
    """Paint chunks first..end-1 of images (B, C, H*W), each chunk `size` pixels, counted through all images.

    codes: eighths int16 (K, 3), zero where there is no channel; unit: the same as unit floats (K, C).
    """
    _, C, n = y.shape
    per_image = (n + size - 1) // size
    pixels = np.zeros((3, BLOCK), dtype=np.int16)
    best, owner = np.empty(BLOCK, dtype=np.int16), np.zeros(BLOCK, dtype=np.int16)
    for chunk in range(first, end):
        b, begin = chunk // per_image, chunk % per_image * size
        stop = min(begin + size, n)
        for start in range(begin, stop, BLOCK):
            count = min(BLOCK, stop - start)
            for c in range(C):
                for i in range(count):
                    pixels[c, i] = y[b, c, start + i]
            search(pixels, codes, best, owner)
            for c in range(C):
                for i in range(count):
                    out[b, c, start + i] = unit[owner[i], c]
