"""The Triton kernel that finds the palettes of many images, a warp for each: bins, Lloyd, separation.

It is used from 16 images for each multiprocessor on, where the number of instructions counts and other images hide
latency: at 4,096 small images it takes 0.77 of the time of `few.py` on an H200. A warp alone waits at no barrier, and
pixels sorted by bin look at a stretch of the centres together. For 128 images it would take 1.7 times as long.
"""

import triton
import triton.language as tl

from linocut.transform.kernels.triton_cuda.bins import (
    code_of,
    load_pixels,
    mark_bins,
    nearest_bin,
    rank_by_counting,
    rank_of,
    write_bin_centers,
)
from linocut.transform.kernels.triton_cuda.clusters import add_to_sums, clear_sums
from linocut.transform.kernels.triton_cuda.groups import (
    close_table,
    list_groups,
    look_for_moves,
    move_centers,
    search_groups,
    survey_groups,
    write_table,
)
from linocut.transform.kernels.triton_cuda.separation import next_image, write_colors


# Another batch size or number of rounds is no reason to compile anew.
@triton.jit(do_not_specialize=["images", "lloyd_steps", "squared_separation"])
def find_palettes_of_many(
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
    BLOCK: tl.constexpr,
    NOTES: tl.constexpr,
    GROUP: tl.constexpr,
    GROUPS: tl.constexpr,
    ROWS: tl.constexpr,
    BY_POPULATION: tl.constexpr,
    AT_LEAST_TWO: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """Image program_id, then whichever is next in line, so that scratch memory is bounded and no program idles."""
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

        write_colors(
            image, centers, sums, num_centers, colors, population, num_colors, most_colors, squared_separation,
            CAP, BLOCK, CHANNELS, BY_POPULATION, AT_LEAST_TWO,
        )  # fmt: skip
        image = next_image(images, taken)


@triton.jit
def start_clusters(
    pixel,
    pixels,
    centers,
    num_centers,
    sums,
    places,
    tags,
    notes,
    WIDTH: tl.constexpr,
    BINS: tl.constexpr,
    WORDS: tl.constexpr,
    PIXELS: tl.constexpr,
    CAP: tl.constexpr,
    CHANNELS: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write centres and sums of the first assignment, and each pixel's tag, rank + 2^16 owner; `places` counts bins.

    Without a bitmap (WORDS is 0) every pixel's owner is its own bin, ties not yet looked at.
    """
    for start in range(0, num_centers, BLOCK):
        k = start + tl.arange(0, BLOCK)
        real = k < num_centers
        clear_sums(sums, k, real, CAP)
        tl.store(places + k, tl.zeros((BLOCK,), tl.int32), mask=real)
    tl.debug_barrier()
    for start in range(0, pixels, CHUNK):
        at = start + tl.arange(0, CHUNK)
        p0, p1, p2, inside = load_pixels(pixel, at, pixels, CHANNELS)
        if WORDS > 0:
            code = code_of(p0, p1, p2, WIDTH, BINS, CHANNELS)
            rank = rank_of(code, inside, notes, WORDS)
            nearest = nearest_bin(p0, p1, p2, code, inside, notes, WIDTH, BINS, CHANNELS)
            owner = rank_of(nearest, inside, notes, WORDS)
        else:
            rank = tl.load(notes + 2 * PIXELS + at, mask=inside, other=0)
            owner = rank
        write_bin_centers(centers, rank, p0, p1, p2, inside, WIDTH, CAP, CHANNELS)
        tl.store(tags + at, rank | (owner << 16), mask=inside)
        tl.atomic_add(places + rank, 1, mask=inside, sem="relaxed", scope="cta")
        add_to_sums(sums, owner, p0, p1, p2, 1, inside, CAP)
    tl.debug_barrier()


@triton.jit
def sort_by_bin(
    pixel,
    pixels,
    num_centers,
    places,
    tags,
    sorted_pixels,
    PIXELS: tl.constexpr,
    CHANNELS: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write two int32 for each pixel, bin after bin: p0 + 2^16 p1, and p2 + 2^16 owner.

    In which order the pixels of one bin come is left to chance; no result depends on it.
    """
    before = 0
    for start in range(0, num_centers, BLOCK):
        k = start + tl.arange(0, BLOCK)
        count = tl.load(places + k, mask=k < num_centers, other=0)
        tl.store(places + k, before + tl.cumsum(count, 0) - count, mask=k < num_centers)
        before += tl.sum(count, 0)
    tl.debug_barrier()
    for start in range(0, pixels, CHUNK):
        at = start + tl.arange(0, CHUNK)
        p0, p1, p2, inside = load_pixels(pixel, at, pixels, CHANNELS)
        tag = tl.load(tags + at, mask=inside, other=0)
        to = tl.atomic_add(places + (tag & 0xFFFF), 1, mask=inside, sem="relaxed", scope="cta")
        tl.store(sorted_pixels + to, p0 | (p1 << 16), mask=inside)
        tl.store(sorted_pixels + PIXELS + to, p2 | ((tag >> 16) << 16), mask=inside)
    tl.debug_barrier()
