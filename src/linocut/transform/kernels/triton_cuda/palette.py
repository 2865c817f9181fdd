"""The Triton kernel that finds an image's colours, one program for one image at a time: bins, Lloyd, separation."""

import triton
import triton.language as tl

from linocut.transform.kernels.triton_cuda.lloyd import (
    EXACT,
    NEVER,
    UNBOUNDED,
    add_to_sums,
    compare_listed,
    list_everything,
    move_centers,
    rank_by_bitmap,
    rank_by_counting,
    search_everywhere,
)


@triton.jit
def assign(
    p0,
    p1,
    p2,
    best,
    bound,
    inside,
    pixel,
    centers,
    listed,
    length,
    num_centers,
    notes,
    pixels,
    bits,
    scale,
    PIXELS: tl.constexpr,
    CAP: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Owner, key and bound of every pixel; `best` is the key of an owner that stood still, NEVER where it moved."""
    second = tl.full((PIXELS,), NEVER, tl.float32)
    best, second = compare_listed(
        p0 * scale, p1 * scale, p2 * scale, best, second, listed, length, CAP, CHANNELS
    )
    key = tl.minimum(best, EXACT * 1.0).to(tl.int32)
    owner = key & ((1 << bits) - 1)
    need = inside & ((key >= EXACT) | ((key >> bits) >= bound))
    bound = tl.minimum(bound, tl.minimum(second, EXACT * 1.0).to(tl.int32) >> bits)
    if tl.max(need.to(tl.int32), 0) > 0:
        search_everywhere(need, pixel, centers, num_centers, notes, pixels, PIXELS, CAP, CHANNELS)
        at = tl.arange(0, PIXELS)
        owner = tl.where(need, tl.load(notes + PIXELS + at, mask=need, other=0), owner)
        distance = tl.load(notes + 2 * PIXELS + at, mask=need, other=0)
        bound = tl.where(need, tl.load(notes + 3 * PIXELS + at, mask=need, other=0), bound)
        fits = distance < (EXACT >> bits)
        found = tl.where(fits, ((distance << bits) + owner).to(tl.float32), NEVER)
        best = tl.where(need, found, best)
    return owner, best, bound


@triton.jit
def find_palette_kernel(
    small,
    colors,
    population,
    num_colors,
    center_scratch,
    list_scratch,
    sum_scratch,
    note_scratch,
    images,
    pixels,
    most_colors,
    lloyd_steps,
    squared_separation,
    WIDTH: tl.constexpr,
    BINS: tl.constexpr,
    WORDS: tl.constexpr,
    CHANNELS: tl.constexpr,
    PIXELS: tl.constexpr,
    CAP: tl.constexpr,
    NOTES: tl.constexpr,
    BY_POPULATION: tl.constexpr,
    AT_LEAST_TWO: tl.constexpr,
):
    """Images program_id, program_id + num_programs, ... one after the other, so that scratch memory is bounded."""
    BLOCK: tl.constexpr = min(256, CAP)
    program = tl.program_id(0).to(tl.int64)
    centers = center_scratch + program * (4 * CAP)
    listed = list_scratch + program * (4 * (CAP + 4))
    sums = sum_scratch + program * (2 * CAP)
    notes = note_scratch + program * NOTES
    at = tl.arange(0, PIXELS)
    inside = at < pixels
    for image in range(tl.program_id(0), images, tl.num_programs(0)):
        pixel = small + tl.cast(image, tl.int64) * CHANNELS * pixels
        p0 = tl.load(pixel + at, mask=inside, other=0).to(tl.int32)
        p1 = p0
        p2 = p0
        code = p0 // WIDTH
        if CHANNELS == 3:
            p1 = tl.load(pixel + pixels + at, mask=inside, other=0).to(tl.int32)
            p2 = tl.load(pixel + 2 * pixels + at, mask=inside, other=0).to(tl.int32)
            code = (code * BINS + p1 // WIDTH) * BINS + p2 // WIDTH

        if WORDS > 0:
            rank, num_centers = rank_by_bitmap(code, inside, notes, WORDS)
        else:
            rank, num_centers = rank_by_counting(code, inside, notes, pixels, PIXELS)
        # Pixels of one bin all write the same centre.
        tl.store(centers + rank, p0 // WIDTH * WIDTH + WIDTH // 2, mask=inside)
        tl.store(centers + CAP + rank, p1 // WIDTH * WIDTH + WIDTH // 2, mask=inside)
        tl.store(centers + 2 * CAP + rank, p2 // WIDTH * WIDTH + WIDTH // 2, mask=inside)
        for start in range(0, num_centers, BLOCK):
            k = start + tl.arange(0, BLOCK)
            tl.store(sums + k, tl.zeros((BLOCK,), tl.int64), mask=k < num_centers)
            tl.store(sums + CAP + k, tl.zeros((BLOCK,), tl.int64), mask=k < num_centers)
        tl.debug_barrier()

        half_bits = 1
        while (1 << (2 * half_bits)) < num_centers:
            half_bits += 1
        bits = 2 * half_bits
        scale = (1 << half_bits).to(tl.float32)
        f0 = p0.to(tl.float32)
        f1 = p1.to(tl.float32)
        f2 = p2.to(tl.float32)

        list_everything(centers, listed, num_centers, scale, CAP, BLOCK)
        key = tl.full((PIXELS,), NEVER, tl.float32)
        bound = tl.full((PIXELS,), UNBOUNDED, tl.int32)
        owner, key, bound = assign(
            f0, f1, f2, key, bound, inside, pixel, centers, listed, num_centers, num_centers, notes, pixels, bits, scale,
            PIXELS, CAP, CHANNELS,
        )  # fmt: skip
        add_to_sums(sums, owner, p0, p1, p2, 1, inside, CAP, CHANNELS)
        tl.debug_barrier()

        step = 0
        while step < lloyd_steps:
            length = move_centers(centers, listed, sums, num_centers, scale, CAP, CHANNELS, BLOCK)
            step += 1
            if length == 0:
                step = lloyd_steps
            if step < lloyd_steps:
                stood = tl.load(centers + 3 * CAP + owner, mask=inside, other=0) == 0
                taken, key, bound = assign(
                    f0, f1, f2, tl.where(stood, key, NEVER), bound, inside, pixel, centers, listed, length, num_centers,
                    notes, pixels, bits, scale, PIXELS, CAP, CHANNELS,
                )  # fmt: skip
                changed = inside & (taken != owner)
                add_to_sums(sums, owner, p0, p1, p2, -1, changed, CAP, CHANNELS)
                add_to_sums(sums, taken, p0, p1, p2, 1, changed, CAP, CHANNELS)
                owner = taken
                tl.debug_barrier()

        row = tl.cast(image, tl.int64) * most_colors
        if num_centers <= BLOCK:
            kept = separate(
                centers, sums, num_centers, colors + row * CHANNELS, population + row, squared_separation,
                CAP, BLOCK, CHANNELS, BY_POPULATION, AT_LEAST_TWO,
            )  # fmt: skip
        else:
            kept = separate(
                centers, sums, num_centers, colors + row * CHANNELS, population + row, squared_separation,
                CAP, CAP, CHANNELS, BY_POPULATION, AT_LEAST_TWO,
            )  # fmt: skip
        tl.store(num_colors + image, kept)
        for start in range(kept, most_colors, BLOCK):
            k = start + tl.arange(0, BLOCK)
            tl.store(population + row + k, tl.zeros((BLOCK,), tl.int32), mask=k < most_colors)
            for channel in tl.static_range(CHANNELS):
                nothing = tl.zeros((BLOCK,), tl.int16)
                tl.store(colors + (row + k) * CHANNELS + channel, nothing, mask=k < most_colors)
        tl.debug_barrier()


@triton.jit
def squared_distance(x0, x1, x2, center, CAP: tl.constexpr, CHANNELS: tl.constexpr):
    """From each centre to the one that `center` points at."""
    d0 = x0 - tl.load(center)
    distance = d0 * d0
    if CHANNELS == 3:
        d1 = x1 - tl.load(center + CAP)
        d2 = x2 - tl.load(center + 2 * CAP)
        distance += d1 * d1 + d2 * d2
    return distance


@triton.jit
def keep(colors, population, place, centers, sums, i, CAP: tl.constexpr, CHANNELS: tl.constexpr):
    """Write cluster i as colour number `place`."""
    for channel in tl.static_range(CHANNELS):
        value = tl.load(centers + channel * CAP + i)
        tl.store(colors + place * CHANNELS + channel, value.to(tl.int16))
    tl.store(population + place, (tl.load(sums + CAP + i) >> 32).to(tl.int32))


@triton.jit
def separate(
    centers,
    sums,
    num_centers,
    colors,
    population,
    squared_separation,
    CAP: tl.constexpr,
    BLOCK: tl.constexpr,
    CHANNELS: tl.constexpr,
    BY_POPULATION: tl.constexpr,
    AT_LEAST_TWO: tl.constexpr,
):
    """How many colours were kept: again and again the first cluster left, and all that are too near to it go.

    A cluster's rank is population * 4096 + 4095 - index, so that one maximum finds the first; 0 is out.
    """
    k = tl.arange(0, BLOCK)
    real = k < num_centers
    size = (tl.load(sums + CAP + k, mask=real, other=0) >> 32).to(tl.int32)
    x0 = tl.load(centers + k, mask=real, other=0)
    x1 = tl.load(centers + CAP + k, mask=real, other=0)
    x2 = tl.load(centers + 2 * CAP + k, mask=real, other=0)
    weight = size if BY_POPULATION else tl.minimum(size, 1)
    rank = tl.where(size > 0, weight * 4096 + 4095 - k, 0)
    kept = 0
    if AT_LEAST_TWO:
        partner = tl.zeros((BLOCK,), tl.int32)
        farthest = tl.full((BLOCK,), -1, tl.int32)
        other = tl.zeros((BLOCK,), tl.int32)
        for j in range(num_centers):
            if (tl.load(sums + CAP + j) >> 32) > 0:
                distance = squared_distance(x0, x1, x2, centers + j, CAP, CHANNELS)
                partner |= ((distance >= squared_separation) & (k != j)).to(tl.int32)
                other = tl.where(distance > farthest, j, other)
                farthest = tl.maximum(farthest, distance)
        some = tl.max(tl.where(rank > 0, partner, 0), 0)
        if some > 0:
            rank = tl.where(partner > 0, rank, 0)
        elif tl.sum((rank > 0).to(tl.int32), 0) > 1:
            farthest = tl.where(rank > 0, farthest, -1)
            most = tl.max(farthest, 0)
            i = tl.min(tl.where(farthest == most, k, BLOCK), 0)
            j = tl.min(tl.where(k == i, other, BLOCK), 0)
            keep(colors, population, 0, centers, sums, i, CAP, CHANNELS)
            keep(colors, population, 1, centers, sums, j, CAP, CHANNELS)
            kept = 2
            rank = tl.zeros((BLOCK,), tl.int32)
    top = tl.max(rank, 0)
    while top > 0:
        i = 4095 - (top & 4095)
        keep(colors, population, kept, centers, sums, i, CAP, CHANNELS)
        near = squared_distance(x0, x1, x2, centers + i, CAP, CHANNELS) < squared_separation
        rank = tl.where(near | (k == i), 0, rank)
        kept += 1
        top = tl.max(rank, 0)
    return kept
