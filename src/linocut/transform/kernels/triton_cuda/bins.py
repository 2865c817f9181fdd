"""Triton functions that begin an image, for few images and for many: its occupied bins and each pixel's first owner.

Scratch memory is one slice for each program; its threads meet at a barrier before they read what others wrote.
"""

import triton
import triton.language as tl


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
def load_pixels(pixel, at, pixels, CHANNELS: tl.constexpr):
    """Three coordinates of the pixels at these places; absent channels are 0."""
    inside = at < pixels
    p0 = tl.load(pixel + at, mask=inside, other=0).to(tl.int32)
    p1 = tl.zeros_like(p0)
    p2 = p1
    if CHANNELS == 3:
        p1 = tl.load(pixel + pixels + at, mask=inside, other=0).to(tl.int32)
        p2 = tl.load(pixel + 2 * pixels + at, mask=inside, other=0).to(tl.int32)
    return p0, p1, p2, inside


@triton.jit
def code_of(p0, p1, p2, WIDTH: tl.constexpr, BINS: tl.constexpr, CHANNELS: tl.constexpr):
    """The number of a pixel's bin, first channel major."""
    code = p0 // WIDTH
    if CHANNELS == 3:
        code = (code * BINS + p1 // WIDTH) * BINS + p2 // WIDTH
    return code


@triton.jit
def mark_bins(
    pixel,
    pixels,
    notes,
    WIDTH: tl.constexpr,
    BINS: tl.constexpr,
    WORDS: tl.constexpr,
    CHANNELS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """How many bins are occupied; `notes` holds a bit for each bin of the colour cube, and counts to rank them by."""
    words = tl.arange(0, WORDS)
    tl.store(notes + words, tl.zeros((WORDS,), tl.int32))
    tl.debug_barrier()
    for start in range(0, pixels, CHUNK):
        p0, p1, p2, inside = load_pixels(pixel, start + tl.arange(0, CHUNK), pixels, CHANNELS)
        code = code_of(p0, p1, p2, WIDTH, BINS, CHANNELS)
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
    nearest = tl.where(is_occupied(code - 1, low2, notes), code - 1, nearest)
    nearest = tl.where(is_occupied(code - BINS, low1, notes), code - BINS, nearest)
    nearest = tl.where(is_occupied(code - BINS * BINS, low0, notes), code - BINS * BINS, nearest)
    several = (low0 & low1) | (low0 & low2) | (low1 & low2)
    if tl.max(several.to(tl.int32), 0) > 0:  # seldom
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
def rank_by_counting(
    pixel,
    pixels,
    notes,
    WIDTH: tl.constexpr,
    BINS: tl.constexpr,
    PIXELS: tl.constexpr,
    CHANNELS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """How many bins are occupied, where they are too many for bits: pixels are compared with pixels.

    `notes` holds three rows: codes, whether a pixel is the first of its bin, and its bin's rank.
    """
    for start in range(0, pixels, CHUNK):
        at = start + tl.arange(0, CHUNK)
        p0, p1, p2, inside = load_pixels(pixel, at, pixels, CHANNELS)
        tl.store(notes + at, code_of(p0, p1, p2, WIDTH, BINS, CHANNELS), mask=inside)
    tl.debug_barrier()
    count = 0
    for start in range(0, pixels, CHUNK):
        at = start + tl.arange(0, CHUNK)
        inside = at < pixels
        code = tl.load(notes + at, mask=inside, other=0)
        repeated = tl.zeros((CHUNK,), tl.int32)
        for j in range(start + CHUNK):
            repeated |= ((tl.load(notes + j, mask=j < pixels, other=-1) == code) & (j < at)).to(tl.int32)
        first = (inside & (repeated == 0)).to(tl.int32)
        tl.store(notes + PIXELS + at, first, mask=inside)
        count += tl.sum(first, 0)
    tl.debug_barrier()
    for start in range(0, pixels, CHUNK):
        at = start + tl.arange(0, CHUNK)
        code = tl.load(notes + at, mask=at < pixels, other=0)
        rank = tl.zeros((CHUNK,), tl.int32)
        for j in range(pixels):
            rank += tl.where(tl.load(notes + j) < code, tl.load(notes + PIXELS + j), 0)
        tl.store(notes + 2 * PIXELS + at, rank, mask=at < pixels)
    tl.debug_barrier()
    return count


@triton.jit
def write_bin_centers(
    centers, rank, p0, p1, p2, inside, WIDTH: tl.constexpr, CAP: tl.constexpr, CHANNELS: tl.constexpr
):
    """Put each bin's middle where its cluster starts; pixels of one bin all write the same. Absent channels stay 0."""
    tl.store(centers + rank, p0 // WIDTH * WIDTH + WIDTH // 2, mask=inside)
    tl.store(centers + CAP + rank, p1 // WIDTH * WIDTH + (WIDTH // 2 if CHANNELS == 3 else 0), mask=inside)
    tl.store(centers + 2 * CAP + rank, p2 // WIDTH * WIDTH + (WIDTH // 2 if CHANNELS == 3 else 0), mask=inside)
