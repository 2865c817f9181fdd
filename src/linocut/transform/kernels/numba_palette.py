"""The palette of one thumbnail, compiled: bins, Lloyd, separation.

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
    for i in range(n):
        order[i] = i
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
def survey(pixels, side, reach, limit, middle, half, on_face):
    """Each pixel's score of a colour `reach` away; each block's box, and if it has a pixel on a bin's lower face."""
    inverse = np.float32(1) / np.float32(side)
    for b in range(len(on_face)):
        x, y, z = pixels[0, b * BLOCK :], pixels[1, b * BLOCK :], pixels[2, b * BLOCK :]
        away = limit[b * BLOCK : (b + 1) * BLOCK]
        for i in range(BLOCK):
            away[i] = reach * reach - (x[i] * x[i] + y[i] * y[i] + z[i] * z[i])
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
    """Write the colours of the centres that moved and list them, with a number above the way; returns how many."""
    count = 0
    for j in range(len(squared)):
        unknown[j] = -NOT_SEARCHED
        if squared[j] > 0:
            x, y, z = np.float32(centers[0, j]), np.float32(centers[1, j]), np.float32(centers[2, j])
            table[0, j], table[1, j], table[2, j], table[3, j] = -2 * x, -2 * y, -2 * z, x * x + y * y + z * z
            unknown[j] = NOT_SEARCHED
            which[count], length[count] = j, np.sqrt(squared[j]) + np.float32(1)
            count += 1
    return count


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
def settle(pixels, start, doubtful, changed, table, score, limit, best, bound, owner, winner):
    """Compare a block's doubtful pixels with all centres; returns where winners are others, and if a doubt remains."""
    in_doubt = False
    while doubtful:
        at = lowest_bit(doubtful)
        bit, i = np.uint64(1) << np.uint64(at), start + at
        doubtful ^= bit
        winner[at], best[i], second = search_everywhere(pixels, i, table, score)
        bound[i] = min(second, limit[i])
        in_doubt |= best[i] >= bound[i]
        changed = changed | bit if winner[at] != owner[i] else changed & ~bit
    return changed, in_doubt


@compiled
def lloyd(flat, side, steps, centers, population):
    """Cluster the pixels (C, n) of a thumbnail; fills centres (3, n) and populations, returns how many clusters.

    What is kept for each centre is filled up to whole vectors: by clusters without pixels, too far to be anyone's.
    """
    n = flat.shape[1]
    blocks = (n + BLOCK - 1) // BLOCK
    owner, winner = np.empty(blocks * BLOCK, dtype=np.int32), np.empty(BLOCK, dtype=np.int32)
    total = np.zeros((3, blocks * BLOCK), dtype=np.int32)
    centers[:], population[:] = 0, 0
    pixels, scores = np.zeros((3, blocks * BLOCK), dtype=np.float32), np.empty((3, blocks * BLOCK), dtype=np.float32)
    limit, best, bound = scores[0], scores[1], scores[2]
    K = start_clusters(flat, side, pixels, owner, centers, population, total)
    middle, half = np.empty((3, blocks), dtype=np.float32), np.empty((3, blocks), dtype=np.float32)
    on_face, in_doubt = np.empty(blocks, dtype=np.bool_), np.zeros(blocks, dtype=np.bool_)
    # No pixel is farther than that from its bin's centre: half a cube's diagonal is less than its side.
    reach = np.float32(side)
    survey(pixels, side, reach, limit, middle, half, on_face)
    padded = (K + 63) // 64 * 64
    near, inverse = np.empty((padded // 64, blocks), dtype=np.uint64), np.empty(padded, dtype=np.float64)
    ints, floats = np.empty((3, padded), dtype=np.int32), np.empty((3, padded), dtype=np.float32)
    which, listed, score = ints[0], ints[1], ints[2]
    length, unknown, squared = floats[0], floats[1], floats[2]
    table = np.zeros((4, padded), dtype=np.float32)
    for j in range(K, padded):
        squared[j], table[3, j] = 0, NOT_SEARCHED
    for step in range(max(steps, 1)):
        if step < 2:  # no distance is known yet: all centres count as moved, from nowhere
            for j in range(K):
                squared[j] = 1
            for i in range(len(best)):
                best[i], bound[i] = NOT_SEARCHED, limit[i]
        moves = list_moved(centers, squared, table, which, length, unknown)
        if moves == 0:
            break
        mark_near(centers, which, length, moves, reach, middle, half, near)
        for b in range(blocks):
            if step == 0 and not on_face[b]:
                continue  # every pixel is nearest to its own bin's centre; on a shared face the lower bin ties
            start, size = b * BLOCK, read_marks(near, b, moves, which, listed)
            if step > 1 and size == 0 and not in_doubt[b]:
                continue
            if step > 1:
                known, owners = best[start : start + BLOCK], owner[start : start + BLOCK].view(np.uint32)
                for i in range(BLOCK):
                    known[i] = max(known[i], unknown[owners[i]])
            doubtful, changed = search_again(pixels, start, table, best, bound, owner, winner, listed, size)
            in_doubt[b] = False
            if doubtful and step > 0:  # at first all that can win are near, and listed in the order that decides ties
                changed, in_doubt[b] = settle(
                    pixels, start, doubtful, changed, table, score, limit, best, bound, owner, winner
                )
            hand_over(pixels, n, start, changed, owner, winner, population, total)
        if steps > 0:
            average(centers, population, total, inverse, squared)
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
def find_palettes(y, first, end, side, steps, separation, by_population, at_least_two, palette, population, num):
    """Fill palettes (B,K,C), populations (B,K) and numbers of colours (B,) for thumbnails (B,C,n) first..end-1."""
    _, C, n = y.shape
    padded = (n + BLOCK - 1) // BLOCK * BLOCK
    centers, counts = np.empty((3, padded), dtype=np.int32), np.empty(padded, dtype=np.int32)
    kept = np.empty(n, dtype=np.int32)
    for b in range(first, end):
        K = lloyd(y[b], side, steps, centers, counts)
        order = order_of_acceptance(counts[:K], by_population)
        num[b] = separate(centers, order, separation, at_least_two, kept)
        for k in range(num[b]):
            population[b, k] = counts[kept[k]]
            for c in range(C):
                palette[b, k, c] = centers[c, kept[k]]
