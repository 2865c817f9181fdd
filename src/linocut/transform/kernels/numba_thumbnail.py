"""Images shrunk by exact area weights, compiled."""

import numpy as np

from linocut.transform.kernels.numba_compiled import compiled


@compiled
def thumbnail(y, size, small):
    """Shrink one image (C,H,W) to `small` by exact area weights; axes of at most `size` are kept."""
    C, H, W = y.shape
    h, w = small.shape[1:]
    n = (H if H > size else 1) * (W if W > size else 1)
    column = np.empty(W, dtype=np.int64)
    for c in range(C):
        for i in range(h):
            column[:] = 0
            # cell i covers [i H, (i+1) H) where a pixel is h wide; a kept axis has weight 1 on its own pixel
            first, end = (i * H // h, ((i + 1) * H + h - 1) // h) if H > size else (i, i + 1)
            for r in range(first, end):
                weight = min((r + 1) * h, (i + 1) * H) - max(r * h, i * H) if H > size else 1
                row = y[c, r]
                for x in range(W):
                    column[x] += weight * row[x]
            for k in range(w):
                total = np.int64(0)
                left, right = (k * W // w, ((k + 1) * W + w - 1) // w) if W > size else (k, k + 1)
                for x in range(left, right):
                    weight = min((x + 1) * w, (k + 1) * W) - max(x * w, k * W) if W > size else 1
                    total += weight * column[x]
                small[c, i, k] = (2 * total + n) // (2 * n)


@compiled
def thumbnails(y, size, first, end, small):
    """Shrink images first..end-1 of (B,C,H,W)."""
    for b in range(first, end):
        thumbnail(y[b], size, small[b])
