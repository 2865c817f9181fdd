"""The Triton kernel that finds an image's colours, one program for one image at a time: bins, Lloyd, separation."""

import triton
import triton.language as tl

from linocut.transform.kernels.triton_cuda.bins import mark_bins, rank_by_counting, sort_by_bin, start_clusters
from linocut.transform.kernels.triton_cuda.lloyd import (
    close_table,
    list_groups,
    look_for_moves,
    move_centers,
    search_groups,
    survey_groups,
    write_table,
)


@triton.jit
def find_palette_kernel(
    small,
    colors,
    population,
    num_colors,
    long_scratch,
    scratch,
    taken,
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
    GROUP: tl.constexpr,
    GROUPS: tl.constexpr,
    ROWS: tl.constexpr,
    BY_POPULATION: tl.constexpr,
    AT_LEAST_TWO: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """Image program_id, then whichever is next in line, so that scratch memory is bounded and no program idles."""
    BLOCK: tl.constexpr = min(128, CAP)
    CHUNK: tl.constexpr = min(max(128, 32 * ROWS), PIXELS)
    program = tl.program_id(0).to(tl.int64)
    sums = long_scratch + program * (4 * CAP + 2 * UNROLL)
    table = sums + 2 * CAP
    centers = scratch + program * (8 * CAP + 3 * PIXELS + 9 * GROUPS + NOTES)
    moves = centers + 3 * CAP
    places = moves + 4 * CAP
    sorted_pixels = places + CAP
    tags = sorted_pixels + 2 * PIXELS
    groups = tags + PIXELS
    notes = groups + 9 * GROUPS
    num_groups = tl.cdiv(pixels, GROUP)
    image = tl.program_id(0)
    while image < images:
        pixel = small + tl.cast(image, tl.int64) * CHANNELS * pixels
        if WORDS > 0:
            num_centers = mark_bins(pixel, pixels, notes, WIDTH, BINS, WORDS, CHANNELS, CHUNK)
        else:
            num_centers = rank_by_counting(pixel, pixels, notes, WIDTH, BINS, PIXELS, CHANNELS, CHUNK)
        start_clusters(
            pixel, pixels, centers, num_centers, sums, places, tags, notes,
            WIDTH, BINS, WORDS, PIXELS, CAP, CHANNELS, CHUNK, BLOCK,
        )  # fmt: skip
        sort_by_bin(pixel, pixels, num_centers, places, tags, sorted_pixels, PIXELS, CHANNELS, CHUNK, BLOCK)
        survey_groups(sorted_pixels, pixels, num_groups, groups, PIXELS, GROUP, GROUPS, WIDTH)
        close_table(table, num_centers, UNROLL)
        if WORDS == 0:
            # Ties on bin faces have not been looked at: every group looks once among the bins' centres.
            for start in range(0, num_centers, BLOCK):
                k = start + tl.arange(0, BLOCK)
                real = k < num_centers
                c0 = tl.load(centers + k, mask=real, other=0)
                c1 = tl.load(centers + CAP + k, mask=real, other=0)
                write_table(table, k, c0, c1, tl.load(centers + 2 * CAP + k, mask=real, other=0), real)
            tl.debug_barrier()
            g = tl.arange(0, GROUPS)
            listed = list_groups(groups, tl.zeros((GROUPS,), tl.int32), g < num_groups, GROUPS)
            search_groups(
                listed, sorted_pixels, pixels, groups, centers, table, sums, num_centers,
                PIXELS, CAP, GROUP, GROUPS, ROWS, BLOCK, UNROLL,
            )  # fmt: skip

        step = 0
        while step < lloyd_steps:
            num_moved = move_centers(centers, table, sums, moves, num_centers, step == 0, CAP, BLOCK)
            step += 1
            if num_moved == 0:
                step = lloyd_steps
            if step < lloyd_steps:
                listed = look_for_moves(moves, num_moved, groups, num_groups, CAP, GROUPS)
                changed = search_groups(
                    listed, sorted_pixels, pixels, groups, centers, table, sums, num_centers,
                    PIXELS, CAP, GROUP, GROUPS, ROWS, BLOCK, UNROLL,
                )  # fmt: skip
                # Where no pixel changed hands no centre will move.
                if changed == 0:
                    step = lloyd_steps

        row = tl.cast(image, tl.int64) * most_colors
        if num_centers <= BLOCK:
            kept = separate(
                centers, sums, num_centers, colors + row * CHANNELS, population + row, squared_separation,
                CAP, BLOCK, CHANNELS, BY_POPULATION, AT_LEAST_TWO,
            )  # fmt: skip
        elif num_centers <= 2 * BLOCK:
            kept = separate(
                centers, sums, num_centers, colors + row * CHANNELS, population + row, squared_separation,
                CAP, 2 * BLOCK, CHANNELS, BY_POPULATION, AT_LEAST_TWO,
            )  # fmt: skip
        else:
            kept = separate(
                centers, sums, num_centers, colors + row * CHANNELS, population + row, squared_separation,
                CAP, CAP, CHANNELS, BY_POPULATION, AT_LEAST_TWO,
            )  # fmt: skip
        tl.store(num_colors + image, kept)
        for start in range(kept, most_colors, CHUNK):
            k = start + tl.arange(0, CHUNK)
            tl.store(population + row + k, tl.zeros((CHUNK,), tl.int32), mask=k < most_colors)
        for start in range(CHANNELS * kept, CHANNELS * most_colors, CHUNK):
            k = start + tl.arange(0, CHUNK)
            tl.store(colors + row * CHANNELS + k, tl.zeros((CHUNK,), tl.int16), mask=k < CHANNELS * most_colors)
        tl.debug_barrier()
        image = images
        if tl.num_programs(0) < images:
            image = tl.num_programs(0) + tl.atomic_add(taken, 1, sem="relaxed")


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
