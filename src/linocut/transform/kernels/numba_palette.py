"""The palette of one image, compiled: thumbnail, bins, Lloyd, separation.

Pixels lie in blocks of 64, sorted by bin. Two things spare work, and neither changes a bit:

- *Nearness.* A block is compared only with centres within reach of the box around it. A pixel that finds its best
  no nearer than that is compared with all.
- *Stillness.* From the third round on only centres that moved are compared. Each pixel keeps its owner's score and
  a bound below every other centre's; where the owner's score is not below the bound, it is compared with all. Some
  50 pixels in all rounds are, of 1,024.

Tables of colours are (4, n) float32: -2c for each channel, then |c|². Pixels are (3, n) float32; an absent channel
is 0. One file, because Numba's cache on disk looks only at the file of the function that was called.
"""

import numpy as np

from linocut.transform.kernels.numba_compiled import compiled
from linocut.transform.kernels.numba_lanes import BLOCK, NOT_SEARCHED, lowest_bit, search_again


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
def sort_by_bin(flat, side, bin_, order):
    """Number each pixel's bin, of (C, n), and fill `order` with the pixels' places by bin, first channel major.

    A radix sort, twelve bits at a time. Bins are numbered (b0 * B + b1) * B + b2, B bins a channel.
    """
    C, n = flat.shape
    bins = 2040 // side + 1
    inverse = np.float32(1) / np.float32(side)
    bin_[:] = 0
    for c in range(C):
        channel = flat[c]
        for i in range(n):
            # half an eighth off every boundary, so the rounding of the product cannot matter
            bin_[i] = bin_[i] * np.int32(bins) + np.int32((np.float32(channel[i]) + np.float32(0.5)) * inverse)
    # Neighbours share bins, and counting one bin twice in a row waits: so from four parts of the image in turn.
    quarter = (n + 3) // 4
    at = 0
    for i in range(quarter):
        for place in range(i, n, quarter):
            order[at] = place
            at += 1
    other = np.empty(n, dtype=np.uint32)
    start = np.empty(min(bins**C, 4096) + 1, dtype=np.uint32)
    shift = 0
    while bins**C > 1 << shift:
        start[:] = 0
        for i in range(n):
            start[(bin_[i] >> shift & 4095) + 1] += np.uint32(1)
        for d in range(1, len(start)):
            start[d] += start[d - 1]
        for i in range(n):
            digit = bin_[order[i]] >> shift & 4095
            other[start[digit]] = order[i]
            start[digit] += np.uint32(1)
        order[:] = other
        shift += 12


@compiled
def start_clusters(flat, side, pixels, owner, centers, population, total):
    """Lay the pixels (C, n) out by bin and give each its own bin's cluster; returns how many clusters there are.

    The last block is filled up with copies of the last pixel, which count for nothing.
    """
    C, n = flat.shape
    bin_, order = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint32)
    sort_by_bin(flat, side, bin_, order)
    end, sums = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.int32)
    k, before = np.uint32(0), bin_[order[0]]
    for i in range(n):
        this = bin_[order[i]]
        k += np.uint32(this != before)
        before = this
        owner[i], end[k] = k, i + 1
    owner[n:] = k
    K = np.int64(k) + 1
    inverse = np.float32(1) / np.float32(side)
    for c in range(C):
        channel, laid, sum_ = flat[c], pixels[c], np.int32(0)
        for i in range(n):
            value = channel[order[i]]
            laid[i] = value
            sum_ += value
            sums[i] = sum_
        laid[n:] = laid[n - 1]
        sum_ = np.int32(0)
        for j in range(K):
            last = end[j] - 1
            total[c, j], sum_ = sums[last] - sum_, sums[last]
            centers[c, j] = np.int32((laid[last] + np.float32(0.5)) * inverse) * side + side // 2
    for j in range(K):
        population[j] = end[j] - (end[j - 1] if j > 0 else 0)
    return K


@compiled
def survey(pixels, side, norm, middle, half, on_face):
    """Each pixel's squared length; each block's smallest box, and whether a pixel of it lies on a bin's lower face."""
    inverse = np.float32(1) / np.float32(side)
    for b in range(len(on_face)):
        x, y, z = pixels[0, b * BLOCK :], pixels[1, b * BLOCK :], pixels[2, b * BLOCK :]
        squares = norm[b * BLOCK : (b + 1) * BLOCK]
        for i in range(BLOCK):
            squares[i] = x[i] * x[i] + y[i] * y[i] + z[i] * z[i]
        faces = np.int32(0)
        for c in range(3):
            channel, low, high = pixels[c, b * BLOCK : (b + 1) * BLOCK], np.int32(2040), np.int32(0)
            for i in range(BLOCK):
                value = np.int32(channel[i])
                low, high = min(low, value), max(high, value)
                faces |= np.int32(value == side * np.int32((channel[i] + np.float32(0.5)) * inverse))
            middle[c, b], half[c, b] = np.float32(low + high) / 2, np.float32(high - low) / 2
        on_face[b] = faces != 0


@compiled
def average(centers, population, total, inverse, squared):
    """Move all centres to their means; an empty cluster's stays. Fills the squared lengths of the moves."""
    for j in range(len(squared)):
        inverse[j] = 0.5 / max(population[j], 1)
        squared[j] = 0
    for c in range(3):
        center, sums = centers[c], total[c]
        for j in range(len(squared)):
            # whole numbers below 2^25, and half a unit off every boundary: the rounding of the product cannot matter
            mean = np.int32((np.float64(2 * sums[j] + population[j]) + 0.5) * inverse[j])
            mean = mean if population[j] > 0 else center[j]
            move = np.float32(mean - center[j])
            squared[j] += move * move
            center[j] = mean


@compiled
def list_moved(centers, squared, table, which, length, unknown):
    """List the centres that moved, with a number above the distance, and write their colours; returns how many."""
    count = 0
    for j in range(len(squared)):
        unknown[j] = -NOT_SEARCHED
        if squared[j] > 0:
            unknown[j] = NOT_SEARCHED
            which[count], length[count] = j, np.sqrt(squared[j]) + np.float32(1)
            count += 1
            write_color(table, j, centers)
    return count


@compiled
def write_color(table, j, centers):
    """Put centre j into a table of -2c and |c|²."""
    x, y, z = np.float32(centers[0, j]), np.float32(centers[1, j]), np.float32(centers[2, j])
    table[0, j], table[1, j], table[2, j], table[3, j] = -2 * x, -2 * y, -2 * z, x * x + y * y + z * z


@compiled
def mark_near(centers, which, length, count, reach, middle, half, near):
    """Set, for each block, the bits of the first `count` listed centres that are or were within reach of its box."""
    x, y, z, X, Y, Z = middle[0], middle[1], middle[2], half[0], half[1], half[2]
    zero = np.float32(0)
    for first in range(0, count, 64):
        marks = near[first // 64]
        marks[:] = 0
        for m in range(first, min(first + 64, count)):
            j, bit, limit = which[m], np.uint64(1) << np.uint64(m - first), (reach + length[m]) ** 2
            cx, cy, cz = np.float32(centers[0, j]), np.float32(centers[1, j]), np.float32(centers[2, j])
            for b in range(len(marks)):
                dx, dy, dz = abs(cx - x[b]) - X[b], abs(cy - y[b]) - Y[b], abs(cz - z[b]) - Z[b]
                dx, dy, dz = dx if dx > 0 else zero, dy if dy > 0 else zero, dz if dz > 0 else zero
                marks[b] |= bit if dx * dx + dy * dy + dz * dz <= limit else np.uint64(0)


@compiled
def read_marks(near, b, count, which, listed):
    """List the centres marked for block b, in index order; returns how many."""
    size = 0
    for first in range(0, count, 64):
        bits = near[first // 64, b]
        while bits:
            listed[size] = which[first + lowest_bit(bits)]
            size += 1
            bits &= bits - np.uint64(1)
    return size


@compiled
def search_everywhere(pixels, i, table, score):
    """Pixel i's nearest colour of all, its score and the second smallest score."""
    x, y, z = pixels[0, i], pixels[1, i], pixels[2, i]
    ax, ay, az, square = table[0], table[1], table[2], table[3]
    never = np.int32(1 << 30)
    best, second, winner, ties = never, never, never, np.int32(0)
    for j in range(len(score)):
        score[j] = np.int32(ax[j] * x + ay[j] * y + az[j] * z + square[j])
        best = min(best, score[j])
    for j in range(len(score)):
        is_best = score[j] == best
        winner = min(winner, np.int32(j) if is_best else never)
        second = min(second, never if is_best else score[j])
        ties += np.int32(is_best)
    second = best if ties > 1 else second
    return winner, np.float32(best), np.float32(second)


@compiled
def hand_over(pixels, n, start, changed, owner, winner, population, total):
    """Give the changed pixels of a block to their winners and keep the clusters' books; from n on they count not."""
    while changed:
        at = lowest_bit(changed)
        changed &= changed - np.uint64(1)
        i, new = start + at, winner[at]
        old = owner[i]
        owner[i] = new
        if i < n:
            population[old] -= 1
            population[new] += 1
            for c in range(3):
                value = np.int32(pixels[c, i])
                total[c, old] -= value
                total[c, new] += value


@compiled
def lloyd(flat, side, steps, centers, population):
    """Cluster the pixels (C, n) of a thumbnail; fills centres (3, n) and populations, returns how many clusters."""
    n = flat.shape[1]
    blocks = (n + BLOCK - 1) // BLOCK
    pixels = np.zeros((3, blocks * BLOCK), dtype=np.float32)
    owner = np.empty(blocks * BLOCK, dtype=np.int32)
    total = np.zeros((3, blocks * BLOCK), dtype=np.int32)
    population[:] = 0
    centers[:] = 0
    K = start_clusters(flat, side, pixels, owner, centers, population, total)
    scores = np.empty((3, blocks * BLOCK), dtype=np.float32)
    norm, best, bound = scores[0], scores[1], scores[2]
    middle, half = np.empty((3, blocks), dtype=np.float32), np.empty((3, blocks), dtype=np.float32)
    on_face = np.empty(blocks, dtype=np.bool_)
    survey(pixels, side, norm, middle, half, on_face)
    padded = (K + 63) // 64 * 64  # whole vectors
    near = np.empty((padded // 64, blocks), dtype=np.uint64)
    open_ = np.zeros(blocks, dtype=np.bool_)
    ints, floats = np.empty((3, padded), dtype=np.int32), np.empty((3, padded), dtype=np.float32)
    which, listed, score = ints[0], ints[1], ints[2]
    length, unknown, squared = floats[0], floats[1], floats[2]
    inverse = np.empty(padded, dtype=np.float64)
    winner = np.empty(BLOCK, dtype=np.int32)
    table = np.empty((4, padded), dtype=np.float32)
    table[3, K:] = NOT_SEARCHED
    table[:3, K:] = 0
    squared[:K], squared[K:] = 1, 0
    moves = list_moved(centers, squared, table, which, length, unknown)
    # No pixel is farther than that from its bin's centre: half a cube's diagonal is less than its side.
    reach = np.float32(side)
    for step in range(max(steps, 1)):
        if step < 2:  # no distance is known yet
            moves = K
            for j in range(K):
                which[j], length[j] = j, 0
            for i in range(len(best)):
                best[i], bound[i] = NOT_SEARCHED, reach * reach - norm[i]
        mark_near(centers, which, length, moves, reach, middle, half, near)
        for b in range(blocks):
            if step == 0 and not on_face[b]:
                continue  # every pixel is nearest to its own bin's centre; on a shared face the lower bin ties
            size, start = read_marks(near, b, moves, which, listed), b * BLOCK
            if size == 0 and not open_[b]:
                continue
            if step > 1:
                known, owners = best[start : start + BLOCK], owner[start : start + BLOCK].view(np.uint32)
                for i in range(BLOCK):
                    known[i] = max(known[i], unknown[owners[i]])
            doubtful, changed = search_again(pixels, start, table, listed, size, best, bound, owner, winner)
            if step > 0:
                open_[b] = False
                while doubtful:
                    at = lowest_bit(doubtful)
                    bit, i = doubtful & ~(doubtful - np.uint64(1)), start + at
                    doubtful ^= bit
                    winner[at], best[i], second = search_everywhere(pixels, i, table, score)
                    bound[i] = min(second, reach * reach - norm[i])
                    open_[b] |= best[i] >= bound[i]
                    changed = changed | bit if winner[at] != owner[i] else changed & ~bit
            hand_over(pixels, n, start, changed, owner, winner, population, total)
        if steps == 0:
            break
        average(centers, population, total, inverse, squared)
        moves = list_moved(centers, squared, table, which, length, unknown)
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
            color[c, i] = centers[c, order[i]]
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
    padded = (n + BLOCK - 1) // BLOCK * BLOCK
    centers = np.empty((3, padded), dtype=np.int32)
    counts = np.empty(padded, dtype=np.int32)
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
                palette[b, k, c] = centers[c, kept[k]]
