"""Triton functions on the clusters of one image, for few images and for many: their sums and their means.

`centers`: three int32 rows of coordinates. `sums`: two int64 rows of int32 pairs, three sums of coordinates and the
population. Sums are kept from round to round: only pixels that change hands are taken out and put in.
"""

import triton
import triton.language as tl

LOW_HALF = tl.constexpr((1 << 32) - 1)


@triton.jit
def pack(low, high):
    """Two float32 in one int64, so that one load brings both."""
    low = low.to(tl.int32, bitcast=True).to(tl.int64) & LOW_HALF
    return low | (high.to(tl.int32, bitcast=True).to(tl.int64) << 32)


@triton.jit
def low_float(pair):
    """The first of the two."""
    return (pair & LOW_HALF).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def high_float(pair):
    """The second of the two."""
    return (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def clear_sums(sums, k, real, CAP: tl.constexpr):
    """Empty the clusters k."""
    tl.store(sums + k, tl.zeros(k.shape, tl.int64), mask=real)
    tl.store(sums + CAP + k, tl.zeros(k.shape, tl.int64), mask=real)


@triton.jit
def add_to_sums(sums, owner, p0, p1, p2, sign, which, CAP: tl.constexpr):
    """Put pixels into (sign 1) or take them out of (sign -1) their clusters. The order of additions does not matter."""
    one = tl.full(p0.shape, 1, tl.int64) << 32
    tl.atomic_add(sums + owner, sign * (p0 + (p1.to(tl.int64) << 32)), mask=which, sem="relaxed", scope="cta")
    tl.atomic_add(sums + CAP + owner, sign * (p2 + one), mask=which, sem="relaxed", scope="cta")


@triton.jit
def mean(total, population, inverse):
    """(2 total + n) // (2 n), from a quotient that is off by one at most."""
    dividend = 2 * total + population
    quotient = (dividend.to(tl.float32) * inverse).to(tl.int32)
    rest = dividend - quotient * 2 * population
    return quotient + (rest >= 2 * population).to(tl.int32) - (rest < 0).to(tl.int32)


@triton.jit
def move_to_means(centers, sums, k, real, CAP: tl.constexpr):
    """Old coordinates, new coordinates and whether it moved, of each centre k; the new ones are written.

    A centre moves to the rounded mean of its pixels; that of an empty cluster stays.
    """
    firsts = tl.load(sums + k, mask=real, other=0)
    last = tl.load(sums + CAP + k, mask=real, other=0)
    old0 = tl.load(centers + k, mask=real, other=0)
    old1 = tl.load(centers + CAP + k, mask=real, other=0)
    old2 = tl.load(centers + 2 * CAP + k, mask=real, other=0)
    population = (last >> 32).to(tl.int32)
    some = tl.maximum(population, 1)
    inverse = 0.5 / some.to(tl.float32)
    new0 = tl.where(population > 0, mean((firsts & LOW_HALF).to(tl.int32), some, inverse), old0)
    new1 = tl.where(population > 0, mean((firsts >> 32).to(tl.int32), some, inverse), old1)
    new2 = tl.where(population > 0, mean((last & LOW_HALF).to(tl.int32), some, inverse), old2)
    moved = real & ((new0 != old0) | (new1 != old1) | (new2 != old2))
    # Fewer centres than threads are in several warps, and one of them writes: not before all have read the old ones.
    tl.debug_barrier()
    tl.store(centers + k, new0, mask=moved)
    tl.store(centers + CAP + k, new1, mask=moved)
    tl.store(centers + 2 * CAP + k, new2, mask=moved)
    return old0, old1, old2, new0, new1, new2, moved
