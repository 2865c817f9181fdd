"""The adaptive blur for strips of rows, compiled; and its transpose.

A strip of a plane is entered once into a padded buffer of whole eighths. Everything after that runs over the buffer
as one long row, padding included: a neighbour is a fixed step away, and the few values that padding spoils are never
read. Narrow images are filtered as fast as wide ones that way.
"""

import numpy as np

from linocut.transform.kernels.numba_compiled import compiled


@compiled
def reflect(i, length):
    """The position that i mirrors into (reflect-101), however far outside it lies."""
    if length == 1:
        return 0
    period = 2 * (length - 1)
    i %= period
    return min(i, period - i)


@compiled
def enter_rows(x, first, pad, buffer):
    """Round rows from first-pad on of a plane of unit floats to eighths, mirrored at the borders, into `buffer`."""
    H, W = x.shape
    for r in range(len(buffer)):
        source, row = x[reflect(first - pad + r, H)], buffer[r]
        inner = row[pad : pad + W]
        for i in range(W):
            v = source[i]
            v = v if v > 0 else np.float32(0)  # NaN compares false
            v = v if v < 1 else np.float32(1)
            inner[i] = np.int32(np.rint(v * np.float32(2040)))
        for i in range(pad):
            row[i] = inner[reflect(i - pad, W)]
            row[pad + W + i] = inner[reflect(W + i, W)]


@compiled
def choose_kernel(flat, step, first, n, limits, level):
    """How many thresholds each of n values from `first` on exceeds; `step` is one row down."""
    nw, n_, ne = flat[first - step - 1 :], flat[first - step :], flat[first - step + 1 :]
    w, e = flat[first - 1 :], flat[first + 1 :]
    sw, s, se = flat[first + step - 1 :], flat[first + step :], flat[first + step + 1 :]
    strength = np.empty(n, dtype=np.int32)
    for i in range(n):
        gx = ne[i] - nw[i] + 2 * (e[i] - w[i]) + se[i] - sw[i]
        gy = sw[i] - nw[i] + 2 * (s[i] - n_[i]) + se[i] - ne[i]
        strength[i] = gx * gx + gy * gy
        level[i] = 0
    for limit in limits:
        for i in range(n):
            level[i] += np.uint8(strength[i] > limit)


@compiled
def weigh(source, first, step, taps, target, n):
    """target[i] = a symmetric filter of `source` around first+i, its neighbours `step` apart; taps[0] is the centre."""
    centre = source[first : first + n]
    for i in range(n):
        target[i] = taps[0] * centre[i]
    for t in range(1, len(taps)):
        tap, before, after = taps[t], source[first - t * step :], source[first + t * step :]
        for i in range(n):
            target[i] += tap * (before[i] + after[i])


@compiled
def blur_strip(x, first, end, sizes, taps, shifts, limits, y, level):
    """Fill rows first..end-1 of one plane: eighths `y` and kernel choice `level`, both (H, W)."""
    W = x.shape[1]
    rows, pad = end - first, max(sizes[0] // 2, 1)
    step = W + 2 * pad
    buffer = np.empty((rows + 2 * pad, step), dtype=np.int32)
    enter_rows(x, first, pad, buffer)
    flat = buffer.reshape(-1)
    start = pad * step + pad  # the strip's first pixel; its last is n - 1 further on
    n = (rows - 1) * step + W
    choice = np.empty(rows * step, dtype=np.uint8)
    choose_kernel(flat, step, start, n, limits, choice)
    down, both = np.empty(n + 2 * pad, dtype=np.int32), np.empty(n, dtype=np.int32)
    chosen = np.empty(rows * step, dtype=np.int32)
    chosen[:n] = flat[start : start + n]
    for k in range(len(sizes)):
        if sizes[k] > 1:
            half, shift = sizes[k] // 2, 2 * shifts[k]
            weigh(flat, start - pad, step, taps[k, : half + 1], down, n + 2 * pad)
            weigh(down, pad, 1, taps[k, : half + 1], both, n)
            rounding = np.int32(1) << (shift - 1)
            for i in range(n):
                chosen[i] = (both[i] + rounding) >> shift if choice[i] == k else chosen[i]
    for r in range(rows):
        y_r, level_r, at = y[first + r], level[first + r], r * step
        for i in range(W):
            y_r[i] = chosen[at + i]
            level_r[i] = choice[at + i]


@compiled
def blur_strips(x, rows, first, end, sizes, taps, shifts, limits, y, level):
    """Blur strips first..end-1 of planes (P, H, W), each strip `rows` high, counted through all planes."""
    H = x.shape[1]
    per_plane = (H + rows - 1) // rows
    for unit in range(first, end):
        p, r = unit // per_plane, unit % per_plane * rows
        blur_strip(x[p], r, min(r + rows, H), sizes, taps, shifts, limits, y[p], level[p])


@compiled
def transpose_plane(grad, level, sizes, taps, shifts, out):
    """The blur's transpose on one plane, its kernel choice frozen: each gradient goes back to the pixels it came from.

    For each kernel the gradients of the pixels that chose it are spread over a padded plane, which is the same
    symmetric filter; then the padding is folded back onto the pixels it mirrored.
    """
    H, W = grad.shape
    pad = max(sizes[0] // 2, 1)
    step = W + 2 * pad
    wide = np.zeros((H + 4 * pad, step), dtype=np.float32)  # twice the padding below and above, to filter whole rows
    spread, down, both = (
        wide.reshape(-1),
        np.zeros(wide.size, dtype=np.float32),
        np.zeros(wide.size, dtype=np.float32),
    )
    start, n = pad * step, (H + 2 * pad) * step
    result = np.zeros((H + 4 * pad, step), dtype=np.float32)
    for k in range(len(sizes)):
        half = sizes[k] // 2
        weights = taps[k, : half + 1].astype(np.float32) / np.float32(1 << shifts[k])
        for r in range(H):
            row = wide[r + 2 * pad]
            for i in range(W):
                row[pad + i] = grad[r, i] if level[r, i] == k else np.float32(0)
        weigh(spread, start, step, weights, down[start:], n)
        weigh(down, start, 1, weights, both[start:], n)
        result += both.reshape(result.shape)
    out[:] = 0
    for r in range(-pad, H + pad):
        row, target = result[r + 2 * pad], out[reflect(r, H)]
        for i in range(W):
            target[i] += row[pad + i]
        for i in range(pad):
            target[reflect(i - pad, W)] += row[i]
            target[reflect(W + i, W)] += row[pad + W + i]


@compiled
def transpose_planes(grad, level, first, end, sizes, taps, shifts, out):
    """The blur's transpose on planes first..end-1 of (P, H, W)."""
    for p in range(first, end):
        transpose_plane(grad[p], level[p], sizes, taps, shifts, out[p])
