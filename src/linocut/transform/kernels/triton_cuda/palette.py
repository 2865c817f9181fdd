"""The Triton kernel that finds an image's colours, one program for one image at a time: bins, Lloyd, separation."""

import triton
import triton.language as tl

from linocut.transform.kernels.triton_cuda.lloyd import (
    EXACT,
    NEVER,
    UNBOUNDED,
    add_to_sums,
    compare_listed,
    mark_bins,
    move_centers,
    nearest_bin,
    rank_by_counting,
    rank_of,
    search_everywhere,
)


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
    UNROLL: tl.constexpr,
):
    """Images program_id, program_id + num_programs, ... one after the other, so that scratch memory is bounded."""
    BLOCK: tl.constexpr = min(256, CAP)
    ROW: tl.constexpr = CAP + UNROLL
    program = tl.program_id(0).to(tl.int64)
    centers = center_scratch + program * (4 * CAP)
    listed = list_scratch + program * (2 * ROW)
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

        # The occupied bins, and each pixel's place among them.
        if WORDS > 0:
            num_centers = mark_bins(code, inside, notes, WORDS)
            rank = rank_of(code, inside, notes, WORDS)
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

        if WORDS > 0:
            owner = rank_of(nearest_bin(p0, p1, p2, code, inside, notes, WIDTH, BINS, CHANNELS), inside, notes, WORDS)
        else:
            search_everywhere(inside, pixels, pixel, centers, num_centers, notes, pixels, PIXELS, CAP, CHANNELS)
            owner = tl.load(notes + PIXELS + at, mask=inside, other=0)
        add_to_sums(sums, owner, p0, p1, p2, 1, inside, CAP, CHANNELS)
        tl.debug_barrier()

        # The key's index needs `bits` bits, an even number of them, so that scaled coordinates stay whole.
        half_bits = 1
        while (1 << (2 * half_bits)) < num_centers:
            half_bits += 1
        bits = 2 * half_bits
        scale = tl.cast(1 << half_bits, tl.float32)
        unscale = 1.0 / scale  # a power of two, so both ways are exact
        f0 = p0.to(tl.float32) * scale
        f1 = p1.to(tl.float32) * scale
        f2 = p2.to(tl.float32) * scale
        key = tl.full((PIXELS,), NEVER, tl.float32)
        bound = tl.full((PIXELS,), UNBOUNDED, tl.int32)
        step = 0
        while step < lloyd_steps:
            # The first round has seen no distances yet: it lists every centre and trusts no key.
            num_moved, length = move_centers(
                centers, listed, sums, num_centers, scale, step == 0, CAP, ROW, CHANNELS, BLOCK, UNROLL
            )
            step += 1
            if num_moved == 0:
                step = lloyd_steps
            if step < lloyd_steps:
                stood = tl.load(centers + 3 * CAP + owner, mask=inside, other=0) == 0
                best = tl.where(stood & (step > 1), key, NEVER)
                best, second = compare_listed(f0, f1, f2, best, listed, length, PIXELS, ROW, CHANNELS, UNROLL)
                whole = tl.minimum(best, EXACT * 1.0).to(tl.int32)
                taken = whole & ((1 << bits) - 1)
                need = inside & ((whole >= EXACT) | ((whole >> bits) >= bound))
                bound = tl.minimum(bound, tl.minimum(second, EXACT * 1.0).to(tl.int32) >> bits)
                key = best
                in_need = tl.sum(need.to(tl.int32), 0)
                if in_need > 0:
                    search_everywhere(need, in_need, pixel, centers, num_centers, notes, pixels, PIXELS, CAP, CHANNELS)
                    found = tl.load(notes + PIXELS + at, mask=need, other=0)
                    distance = tl.load(notes + 2 * PIXELS + at, mask=need, other=0)
                    bound = tl.where(need, tl.load(notes + 3 * PIXELS + at, mask=need, other=0), bound)
                    taken = tl.where(need, found, taken)
                    fits = distance < (EXACT >> bits)
                    exact_key = tl.where(fits, ((distance << bits) + found).to(tl.float32), NEVER)
                    key = tl.where(need, exact_key, key)
                changed = inside & (taken != owner)
                q0 = (f0 * unscale).to(tl.int32)
                q1 = (f1 * unscale).to(tl.int32)
                q2 = (f2 * unscale).to(tl.int32)
                add_to_sums(sums, owner, q0, q1, q2, -1, changed, CAP, CHANNELS)
                add_to_sums(sums, taken, q0, q1, q2, 1, changed, CAP, CHANNELS)
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
                distance = tl.where(k == j, -1, distance)  # nobody is its own partner
                partner |= (distance >= squared_separation).to(tl.int32)
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
