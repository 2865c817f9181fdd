"""The palette of one image, compiled: thumbnail, bins, Lloyd, separation.

Pixels lie in blocks of 64, sorted by bin. Two things spare work, and neither changes a bit:

- *Slabs.* Clusters in bin order are sorted by the first channel. If no pixel of a block is farther than r from
  its cluster, a colour whose first channel differs by more than r cannot win, so only a few slabs are searched.
- *Stillness.* A block whose surroundings no moving centre touched keeps its assignment without being looked at;
  after a few rounds of Lloyd nearly all do.

Tables of colours are (4, n) float32: -2c for each channel, then |c|². Pixels are (3, n) float32; an absent channel
is 0. One file, because Numba's cache on disk looks only at the file of the function that was called.
"""

import math

import numpy as np

from linocut.transform.kernels.numba_compiled import compiled
from linocut.transform.kernels.numba_lanes import BLOCK, NOT_SEARCHED, search


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
def sort_by_bin(flat, side, keys):
    """Fill `keys` with bin * 2^12 + place for each pixel of (C, n), in order: bins first channel major, then places.

    A stable radix sort, six bits at a time. Bins are numbered (b0 * B + b1) * B + b2, B bins a channel.
    """
    C, n = flat.shape
    bins = 2040 // side + 1
    inverse = np.float32(1) / np.float32(side)
    other = np.empty(n, dtype=np.int64)
    for i in range(n):
        keys[i] = 0
    for c in range(C):
        channel = flat[c]
        for i in range(n):
            # half an eighth off every boundary, so the rounding of the product cannot matter
            keys[i] = keys[i] * bins + np.int32((np.float32(channel[i]) + np.float32(0.5)) * inverse)
    for i in range(n):
        keys[i] = keys[i] << 12 | i
    start = np.empty(65, dtype=np.int32)
    shift = 12
    while bins**C > 1 << (shift - 12):
        start[:] = 0
        for i in range(n):
            start[(keys[i] >> shift & 63) + 1] += 1
        for d in range(64):
            start[d + 1] += start[d]
        for i in range(n):
            digit = keys[i] >> shift & 63
            other[start[digit]] = keys[i]
            start[digit] += 1
        keys[:] = other
        shift += 6


@compiled
def write_color(table, j, color):
    """Put colour j into a table of -2c and |c|²."""
    x, y, z = color[0], color[1], color[2]
    table[0, j], table[1, j], table[2, j], table[3, j] = -2 * x, -2 * y, -2 * z, x * x + y * y + z * z


@compiled
def start_clusters(flat, side, pixels, owner, centers, population, total):
    """Lay the pixels (C, n) out by bin and give each its own bin's cluster; returns how many clusters there are.

    The last block is filled up with copies of the last pixel, which count for nothing.
    """
    C, n = flat.shape
    keys = np.empty(n, dtype=np.int64)
    sort_by_bin(flat, side, keys)
    for c in range(C):
        channel, laid = flat[c], pixels[c]
        for i in range(n):
            laid[i] = channel[keys[i] & 4095]
        laid[n:] = laid[n - 1]
    K, first = 0, 0
    for i in range(1, n + 1):
        if i == n or keys[i] >> 12 != keys[first] >> 12:
            population[K] = i - first
            for j in range(first, i):
                owner[j] = K
            for c in range(3):
                channel, sum_ = pixels[c], np.float32(0)  # exact: below 2^24
                for j in range(first, i):
                    sum_ += channel[j]
                total[K, c] = np.int32(sum_)
                centers[K, c] = np.int32(channel[first]) // side * side + side // 2 if c < C else 0
            K, first = K + 1, i
    owner[n:] = K - 1
    return K


@compiled
def survey(pixels, side, norm, lowest, highest, on_face):
    """Each pixel's squared length; each block's smallest box, and whether a pixel of it lies on a bin's lower face."""
    inverse = np.float32(1) / np.float32(side)
    for b in range(len(on_face)):
        x, y, z = pixels[0, b * BLOCK :], pixels[1, b * BLOCK :], pixels[2, b * BLOCK :]
        squares = norm[b * BLOCK : (b + 1) * BLOCK]
        for i in range(BLOCK):
            squares[i] = np.int32(x[i] * x[i] + y[i] * y[i] + z[i] * z[i])
        faces = np.int32(0)
        for c in range(3):
            channel, low, high = pixels[c, b * BLOCK : (b + 1) * BLOCK], np.int32(2040), np.int32(0)
            for i in range(BLOCK):
                value = np.int32(channel[i])
                low, high = min(low, value), max(high, value)
                faces |= np.int32(value == side * np.int32((channel[i] + np.float32(0.5)) * inverse))
            lowest[b, c], highest[b, c] = low, high
        on_face[b] = faces != 0


@compiled
def search_slabs(pixels, start, table, slabs, slab_low, slab_high, low, high, best, winner):
    """Search, for one block, the slabs that reach into low..high, in index order."""
    for i in range(BLOCK):
        best[i] = NOT_SEARCHED
    first = 0
    for s in range(len(slab_low)):
        if slab_low[s] > high or slab_high[s] < low:
            if first < slabs[s]:
                search(pixels, start, table, first, slabs[s], best, winner)
            first = slabs[s + 1]
    if first < slabs[-1]:
        search(pixels, start, table, first, slabs[-1], best, winner)


@compiled
def hand_over(pixels, first, end, owner, winner, population, total, touched):
    """Give pixels first..end-1 to their winners and keep the books of the clusters concerned."""
    for i in range(first, end):
        old, new = owner[i], winner[i - first]
        if old != new:
            owner[i] = new
            touched[old] = touched[new] = True
            population[old] -= 1
            population[new] += 1
            for c in range(3):
                value = np.int32(pixels[c, i])
                total[old, c] -= value
                total[new, c] += value


@compiled
def average(centers, population, total, touched, table, before, after, length):
    """Move the touched centres to their means; returns how many moved.

    Of each move: the centre before and after, and a whole number not below the distance.
    """
    count = 0
    for j in range(len(touched)):
        if touched[j] and population[j] > 0:
            squared = np.int32(0)
            for c in range(3):
                # whole numbers below 2^25 divide in float64 without reaching the next whole number
                mean = np.int32(np.float64(2 * total[j, c] + population[j]) / np.float64(2 * population[j]))
                squared += (mean - centers[j, c]) ** 2
                before[c, count], after[c, count] = centers[j, c], mean
                centers[j, c] = mean
            if squared > 0:
                write_color(table, j, centers[j])
                length[count] = np.int32(math.ceil(math.sqrt(squared)))
                count += 1
        touched[j] = False
    return count


@compiled
def farthest_move(lowest, highest, reach, before, after, length, count):
    """How far, at most, a centre moved that was or is within `reach` of the box lowest..highest; 0 if none did."""
    x, y, z = lowest[0] - reach, lowest[1] - reach, lowest[2] - reach
    X, Y, Z = highest[0] + reach, highest[1] + reach, highest[2] + reach
    x0, y0, z0, x1, y1, z1 = before[0], before[1], before[2], after[0], after[1], after[2]
    farthest = np.int32(0)
    for m in range(count):
        was = (x0[m] >= x) & (x0[m] <= X) & (y0[m] >= y) & (y0[m] <= Y) & (z0[m] >= z) & (z0[m] <= Z)
        now = (x1[m] >= x) & (x1[m] <= X) & (y1[m] >= y) & (y1[m] <= Y) & (z1[m] >= z) & (z1[m] <= Z)
        farthest = max(farthest, length[m] if was | now else np.int32(0))
    return farthest


@compiled
def lloyd(flat, side, steps, centers, population):
    """Cluster the pixels (C, n) of a thumbnail; fills centres (n, 3) and populations, returns how many clusters."""
    n = flat.shape[1]
    blocks = (n + BLOCK - 1) // BLOCK
    pixels = np.zeros((3, blocks * BLOCK), dtype=np.float32)
    owner, norm = np.empty(blocks * BLOCK, dtype=np.int32), np.empty(blocks * BLOCK, dtype=np.int32)
    total = np.empty((n, 3), dtype=np.int32)
    K = start_clusters(flat, side, pixels, owner, centers, population, total)
    lowest, highest = np.empty((blocks, 3), dtype=np.int32), np.empty((blocks, 3), dtype=np.int32)
    on_face = np.empty(blocks, dtype=np.bool_)
    survey(pixels, side, norm, lowest, highest, on_face)
    table = np.empty((4, K), dtype=np.float32)
    slabs, count = np.empty(K + 1, dtype=np.int32), 0
    for j in range(K):
        write_color(table, j, centers[j])
        if j == 0 or centers[j, 0] != centers[j - 1, 0]:
            slabs[count] = j
            count += 1
    slabs[count] = K
    slabs = slabs[: count + 1]
    slab_low, slab_high = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    # No pixel of a block is farther than its reach from its cluster: half a cube's diagonal is less than its side.
    reach = np.full(blocks, side, dtype=np.int32)
    best, winner = np.empty(BLOCK, dtype=np.float32), np.empty(BLOCK, dtype=np.int32)
    before, after = np.empty((3, K), dtype=np.int32), np.empty((3, K), dtype=np.int32)
    length = np.empty(K, dtype=np.int32)
    touched = np.ones(K, dtype=np.bool_)
    moves = 0
    for step in range(max(steps, 1)):
        for s in range(count):
            low, high = np.int32(2040), np.int32(0)
            for j in range(slabs[s], slabs[s + 1]):
                low, high = min(low, centers[j, 0]), max(high, centers[j, 0])
            slab_low[s], slab_high[s] = low, high
        for b in range(blocks):
            farther = np.int32(0)
            if step > 0:
                farther = farthest_move(lowest[b], highest[b], reach[b], before, after, length, moves)
                if farther == 0:
                    continue
            elif not on_face[b]:
                continue  # every pixel is nearest to its own bin's centre; on a shared face the lower bin ties
            start, around = b * BLOCK, reach[b] + farther
            search_slabs(
                pixels,
                start,
                table,
                slabs,
                slab_low,
                slab_high,
                lowest[b, 0] - around,
                highest[b, 0] + around,
                best,
                winner,
            )
            worst, changed = np.int32(0), np.int32(0)
            squares, owners = norm[start : start + BLOCK], owner[start : start + BLOCK]
            for i in range(BLOCK):
                worst = max(worst, np.int32(best[i]) + squares[i])
                changed |= winner[i] ^ owners[i]
            reach[b] = np.int32(math.ceil(math.sqrt(worst)))
            if changed:
                hand_over(pixels, start, min(start + BLOCK, n), owner, winner, population, total, touched)
        if steps == 0:
            break
        moves = average(centers, population, total, touched, table, before, after, length)
        if moves == 0:
            break
    return K


@compiled
def order_of_acceptance(population, by_population):
    """Indices of the clusters that are not empty, most populous first (stable), or as they stand."""
    order = np.empty(len(population), dtype=np.int32)
    largest = population.max()
    place = np.zeros(largest + 1, dtype=np.int32)
    for size in population:
        place[size if by_population else min(size, 1)] += 1
    at = 0
    for size in range(largest, 0, -1):
        place[size], at = at, at + place[size]
    for j in range(len(population)):
        if population[j] > 0:
            size = population[j] if by_population else 1
            order[place[size]] = j
            place[size] += 1
    return order[:at]


@compiled
def separate(centers, order, separation, at_least_two, kept):
    """Greedily accept clusters at least `separation` apart into `kept`; returns how many."""
    K, limit = len(order), separation * separation
    color = np.empty((3, K), dtype=np.int32)
    for i in range(K):
        for c in range(3):
            color[c, i] = centers[order[i], c]
    distance = np.empty(K, dtype=np.int32)
    rejected = np.zeros(K, dtype=np.bool_)
    if at_least_two and K > 1:
        best, pair, any_partner = np.int32(-1), (np.int32(0), np.int32(0)), False
        for i in range(K):
            distances_to(color, i, distance)
            rejected[i] = True
            for j in range(K):
                if j != i:
                    rejected[i] &= distance[j] < limit
                    ends = min(order[i], order[j]), max(order[i], order[j])
                    if distance[j] > best or (distance[j] == best and ends < pair):
                        best, pair = distance[j], ends
            any_partner |= not rejected[i]
        if not any_partner:
            kept[0], kept[1] = pair
            return 2
    count = 0
    for i in range(K):
        if not rejected[i]:
            kept[count] = order[i]
            count += 1
            distances_to(color, i, distance)
            for j in range(K):
                rejected[j] |= distance[j] < limit
    return count


@compiled
def distances_to(color, i, distance):
    """Squared distances of all colours (3, K) to colour i."""
    x, y, z = color[0], color[1], color[2]
    for j in range(len(distance)):
        distance[j] = (x[j] - x[i]) ** 2 + (y[j] - y[i]) ** 2 + (z[j] - z[i]) ** 2


@compiled
def find_palettes(y, first, end, size, side, steps, separation, by_population, at_least_two, palette, population, num):
    """Fill palettes (B,K,C), populations (B,K) and numbers of colours (B,) for images first..end-1."""
    _, C, H, W = y.shape
    h, w = min(H, size), min(W, size)
    n = h * w
    small = np.empty((C, h, w), dtype=np.int16)
    centers = np.empty((n, 3), dtype=np.int32)
    counts = np.empty(n, dtype=np.int32)
    kept = np.empty(n, dtype=np.int32)
    for b in range(first, end):
        if n < H * W:
            thumbnail(y[b], size, small)
        else:
            small = y[b]
        K = lloyd(small.reshape(C, n), side, steps, centers, counts)
        order = order_of_acceptance(counts[:K], by_population)
        num[b] = separate(centers, order, separation, at_least_two, kept)
        for k in range(num[b]):
            population[b, k] = counts[kept[k]]
            for c in range(C):
                palette[b, k, c] = centers[kept[k], c]
