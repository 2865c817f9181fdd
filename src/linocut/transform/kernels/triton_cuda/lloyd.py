"""Triton functions of Lloyd's rounds: where centres start, who owns a pixel, where centres move.

Most of the work is skipped without changing a bit of the result:

- Only centres that moved are compared again. Each pixel keeps a lower bound on its squared distance to every
  centre but its own; a pixel whose best distance is below that bound cannot belong to a centre that stood still.
  The few others are searched among all centres (`search_everywhere`).
- Sums and populations are kept, and only pixels that change hands are taken out and put in.

A distance and its centre's index travel in one float32, distance * 2^bits + index, so that one minimum finds both and
breaks ties to the lowest index. It is exact below 2^24; a pixel that gets no such key is searched everywhere too.

Scratch memory is one slice for each program. `centers` holds four int32 rows: three coordinates, and whether the
centre moved. `listed` holds two int64 rows of float32 pairs: scaled coordinates and index of the centres to compare.
`sums` holds two int64 rows of int32 pairs: three sums of coordinates and the population. A program's threads meet at
a barrier before they read what others wrote.
"""

import triton
import triton.language as tl

EXACT = tl.constexpr(1 << 24)  # whole numbers below it are exact in float32
UNBOUNDED = tl.constexpr(1 << 30)
NEVER = tl.constexpr(1.0e30)  # a key above every real one
FAR = tl.constexpr(1.0e9)  # a coordinate whose key is above every exact one
LOW_HALF = tl.constexpr((1 << 32) - 1)


@triton.jit
def count_bits(word):
    """How many bits of each int32 are set."""
    word = word.to(tl.uint32, bitcast=True)
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) >> 24).to(tl.int32)


@triton.jit
def is_occupied(code, which, notes):
    """Whether the bin of this code holds a pixel, once `mark_bins` has run."""
    return which & (((tl.load(notes + code // 32, mask=which, other=0) >> (code % 32)) & 1) > 0)


@triton.jit
def rank_of(code, inside, notes, WORDS: tl.constexpr):
    """How many occupied bins have a smaller code."""
    smaller = (tl.full(code.shape, 1, tl.int32) << (code % 32)) - 1
    before = tl.load(notes + WORDS + code // 32, mask=inside, other=0)
    return before + count_bits(tl.load(notes + code // 32, mask=inside, other=0) & smaller)


@triton.jit
def mark_bins(code, inside, notes, WORDS: tl.constexpr):
    """How many bins are occupied; `notes` holds a bit for each bin of the colour cube, and counts to rank them by."""
    words = tl.arange(0, WORDS)
    tl.store(notes + words, tl.zeros((WORDS,), tl.int32))
    tl.debug_barrier()
    bit = tl.full(code.shape, 1, tl.int32) << (code % 32)
    tl.atomic_or(notes + code // 32, bit, mask=inside, sem="relaxed", scope="cta")
    tl.debug_barrier()
    ones = count_bits(tl.load(notes + words))
    tl.store(notes + WORDS + words, tl.cumsum(ones, 0) - ones)
    tl.debug_barrier()
    return tl.sum(ones, 0)


@triton.jit
def nearest_bin(p0, p1, p2, code, inside, notes, WIDTH: tl.constexpr, BINS: tl.constexpr, CHANNELS: tl.constexpr):
    """The code of the occupied bin whose centre is nearest: the pixel's own, but for ties.

    A coordinate on a bin's lower face is as near to the next lower centre. Where several channels lie so, lowering any
    of them gives equal distances; the lowest code wins. Bit 4 of `lowered` stands for the first channel, 2, then 1.
    """
    low0 = inside & (p0 % WIDTH == 0) & (p0 > 0)
    if CHANNELS == 1:
        return tl.where(is_occupied(code - 1, low0, notes), code - 1, code)
    low1 = inside & (p1 % WIDTH == 0) & (p1 > 0)
    low2 = inside & (p2 % WIDTH == 0) & (p2 > 0)
    nearest = code
    for lowered in tl.static_range(1, 8):
        tied = inside
        if lowered & 4:
            tied = tied & low0
        if lowered & 2:
            tied = tied & low1
        if lowered & 1:
            tied = tied & low2
        lower = code - (lowered // 4) * BINS * BINS - (lowered // 2 % 2) * BINS - lowered % 2
        nearest = tl.where(is_occupied(lower, tied, notes), lower, nearest)
    return nearest


@triton.jit
def rank_by_counting(code, inside, notes, pixels, PIXELS: tl.constexpr):
    """The same for bins too many for a bitmap: every pixel is compared with every other."""
    at = tl.arange(0, PIXELS)
    tl.store(notes + at, code, mask=inside)
    tl.debug_barrier()
    repeated = tl.zeros((PIXELS,), tl.int32)
    for j in range(pixels):
        repeated |= ((tl.load(notes + j) == code) & (j < at)).to(tl.int32)
    first = (inside & (repeated == 0)).to(tl.int32)
    tl.store(notes + PIXELS + at, first, mask=inside)
    tl.debug_barrier()
    rank = tl.zeros((PIXELS,), tl.int32)
    for j in range(pixels):
        rank += tl.where(tl.load(notes + j) < code, tl.load(notes + PIXELS + j), 0)
    return rank, tl.sum(first, 0)


@triton.jit
def pack(low, high):
    """Two float32 in one int64, so that one load brings both."""
    low = low.to(tl.int32, bitcast=True).to(tl.int64) & LOW_HALF
    return low | (high.to(tl.int32, bitcast=True).to(tl.int64) << 32)


@triton.jit
def put_on_list(listed, place, c0, c1, c2, index, scale, which, ROW: tl.constexpr):
    """Write centres to be compared: scaled coordinates and index."""
    tl.store(listed + place, pack(c0.to(tl.float32) * scale, index.to(tl.float32)), mask=which)
    tl.store(listed + ROW + place, pack(c1.to(tl.float32) * scale, c2.to(tl.float32) * scale), mask=which)


@triton.jit
def close_list(listed, length, ROW: tl.constexpr, UNROLL: tl.constexpr):
    """Pad the list with centres nobody is near, so that it can be read UNROLL at a time."""
    extra = length + tl.arange(0, UNROLL)
    far = tl.full((UNROLL,), FAR, tl.float32)
    tl.store(listed + extra, pack(far, far))
    tl.store(listed + ROW + extra, pack(far, far))
    tl.debug_barrier()


@triton.jit
def compare_listed(
    p0,
    p1,
    p2,
    best,
    listed,
    length,
    PIXELS: tl.constexpr,
    ROW: tl.constexpr,
    CHANNELS: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """The two smallest keys of each pixel, among `best` and the listed centres'; p is scaled."""
    second = tl.full((PIXELS,), NEVER, tl.float32)
    for start in range(0, length, UNROLL):
        for step in tl.static_range(UNROLL):
            pair = tl.load(listed + start + step)
            d0 = p0 - (pair & LOW_HALF).to(tl.int32).to(tl.float32, bitcast=True)
            key = d0 * d0 + (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)
            if CHANNELS == 3:
                pair = tl.load(listed + ROW + start + step)
                d1 = p1 - (pair & LOW_HALF).to(tl.int32).to(tl.float32, bitcast=True)
                d2 = p2 - (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)
                key = d2 * d2 + (d1 * d1 + key)
            second = tl.minimum(second, tl.maximum(best, key))
            best = tl.minimum(best, key)
    return best, second


@triton.jit
def search_everywhere(
    need,
    count,
    pixel,
    centers,
    num_centers,
    notes,
    pixels,
    PIXELS: tl.constexpr,
    CAP: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Leave owner, squared distance and the second smallest one of the `count` pixels in need in rows of `notes`."""
    SOME: tl.constexpr = 16
    BLOCK: tl.constexpr = 64
    wanted = need.to(tl.int32)
    place = tl.cumsum(wanted, 0) - wanted
    tl.store(notes + place, tl.arange(0, PIXELS), mask=need)
    tl.debug_barrier()
    for start in range(0, count, SOME):
        slot = start + tl.arange(0, SOME)
        real = slot < count
        who = tl.load(notes + slot, mask=real, other=0)
        q0 = tl.load(pixel + who).to(tl.int32)[:, None]
        q1 = q0
        q2 = q0
        if CHANNELS == 3:
            q1 = tl.load(pixel + pixels + who).to(tl.int32)[:, None]
            q2 = tl.load(pixel + 2 * pixels + who).to(tl.int32)[:, None]
        best = tl.full((SOME,), UNBOUNDED, tl.int32)
        second = tl.full((SOME,), UNBOUNDED, tl.int32)
        owner = tl.zeros((SOME,), tl.int32)
        for base in range(0, num_centers, BLOCK):
            k = base + tl.arange(0, BLOCK)
            there = k < num_centers
            d0 = q0 - tl.load(centers + k, mask=there, other=0)[None, :]
            distance = d0 * d0
            if CHANNELS == 3:
                d1 = q1 - tl.load(centers + CAP + k, mask=there, other=0)[None, :]
                d2 = q2 - tl.load(centers + 2 * CAP + k, mask=there, other=0)[None, :]
                distance += d1 * d1 + d2 * d2
            distance = tl.where(there[None, :], distance, UNBOUNDED)
            least = tl.min(distance, 1)
            first = tl.min(tl.where(distance == least[:, None], k[None, :], UNBOUNDED), 1)
            others = tl.min(tl.where(k[None, :] == first[:, None], UNBOUNDED, distance), 1)
            second = tl.where(least < best, tl.minimum(best, others), tl.minimum(second, least))
            owner = tl.where(least < best, first, owner)
            best = tl.minimum(best, least)
        tl.store(notes + PIXELS + who, owner, mask=real)
        tl.store(notes + 2 * PIXELS + who, best, mask=real)
        tl.store(notes + 3 * PIXELS + who, second, mask=real)
    tl.debug_barrier()


@triton.jit
def add_to_sums(sums, owner, p0, p1, p2, sign, which, CAP: tl.constexpr, CHANNELS: tl.constexpr):
    """Put pixels into (sign 1) or take them out of (sign -1) their clusters. The order of additions does not matter."""
    one = tl.full(p0.shape, 1, tl.int64) << 32
    if CHANNELS == 3:
        tl.atomic_add(sums + owner, sign * (p0 + (p1.to(tl.int64) << 32)), mask=which, sem="relaxed", scope="cta")
        tl.atomic_add(sums + CAP + owner, sign * (p2 + one), mask=which, sem="relaxed", scope="cta")
    else:
        tl.atomic_add(sums + CAP + owner, sign * (p0 + one), mask=which, sem="relaxed", scope="cta")


@triton.jit
def move_one(total, population, center):
    """The rounded mean, or the old centre of an empty cluster."""
    n = tl.maximum(population, 1)
    return tl.where(population > 0, (2 * total + n) // (2 * n), center)


@triton.jit
def move_centers(
    centers,
    listed,
    sums,
    num_centers,
    scale,
    list_all,
    CAP: tl.constexpr,
    ROW: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """How many centres moved to the mean of their pixels, and how many are listed: those, or all if `list_all`."""
    num_moved = 0
    length = 0
    for start in range(0, num_centers, BLOCK):
        k = start + tl.arange(0, BLOCK)
        real = k < num_centers
        last = tl.load(sums + CAP + k, mask=real, other=0)
        population = (last >> 32).to(tl.int32)
        old0 = tl.load(centers + k, mask=real, other=0)
        if CHANNELS == 3:
            firsts = tl.load(sums + k, mask=real, other=0)
            old1 = tl.load(centers + CAP + k, mask=real, other=0)
            old2 = tl.load(centers + 2 * CAP + k, mask=real, other=0)
            new0 = move_one((firsts & LOW_HALF).to(tl.int32), population, old0)
            new1 = move_one((firsts >> 32).to(tl.int32), population, old1)
            new2 = move_one((last & LOW_HALF).to(tl.int32), population, old2)
            moved = real & ((new0 != old0) | (new1 != old1) | (new2 != old2))
        else:
            new0 = move_one((last & LOW_HALF).to(tl.int32), population, old0)
            new1 = new0
            new2 = new0
            moved = real & (new0 != old0)
        tl.store(centers + k, new0, mask=moved)
        tl.store(centers + CAP + k, new1, mask=moved)
        tl.store(centers + 2 * CAP + k, new2, mask=moved)
        tl.store(centers + 3 * CAP + k, moved.to(tl.int32), mask=real)
        chosen = moved | (real & list_all)
        one = chosen.to(tl.int32)
        put_on_list(listed, length + tl.cumsum(one, 0) - one, new0, new1, new2, k, scale, chosen, ROW)
        length += tl.sum(one, 0)
        num_moved = tl.maximum(num_moved, tl.max(moved.to(tl.int32), 0))
    close_list(listed, length, ROW, UNROLL)
    return num_moved, length
