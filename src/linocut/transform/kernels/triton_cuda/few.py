"""The Triton kernel that finds the palettes of few images, eight warps for each: bins, Lloyd, separation.

It is used below 16 images for each multiprocessor, where the time is that of the slowest image's chain of rounds: at
128 small images it takes 0.58 of the time of `many.py` on an H200. Pixels stay in registers, and most of the
comparisons are skipped without changing a bit of the result:

- Only centres that moved are compared again. Each pixel keeps a lower bound on its squared distance to every
  centre but its own; a pixel whose best distance is below that bound cannot belong to a centre that stood still.
- The few others are searched among all centres (`search_everywhere`).

A distance and its centre's index travel in one float32, distance * 2^bits + index, so that one minimum finds both and
breaks ties to the lowest index. It is exact below 2^24; a pixel that gets no such key is searched everywhere too.

Scratch memory is one slice for each program, besides `clusters.py`'s: a fourth row of `centers`, whether the centre
moved, and `listed`, two int64 rows of float32 pairs: scaled coordinates and index of the centres to compare.
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
from linocut.transform.kernels.triton_cuda.clusters import (
    add_to_sums,
    clear_sums,
    high_float,
    low_float,
    move_to_means,
    pack,
)
from linocut.transform.kernels.triton_cuda.separation import next_image, write_colors

EXACT = tl.constexpr(1 << 24)  # whole numbers below it are exact in float32
UNBOUNDED = tl.constexpr(1 << 30)
NEVER = tl.constexpr(1.0e30)  # a key above every real one
FAR = tl.constexpr(1.0e9)  # a coordinate whose key is above every exact one


# Another batch size or number of rounds is no reason to compile anew.
@triton.jit(do_not_specialize=["images", "lloyd_steps", "squared_separation"])
def find_palettes_of_few(
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
    BY_POPULATION: tl.constexpr,
    AT_LEAST_TWO: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """Image program_id, then whichever is next in line, so that scratch memory is bounded and no program idles."""
    ROW: tl.constexpr = CAP + UNROLL
    program = tl.program_id(0).to(tl.int64)
    sums = long_scratch + program * (2 * CAP + 2 * ROW)
    listed = sums + 2 * CAP
    centers = scratch + program * (4 * CAP + NOTES)
    notes = centers + 4 * CAP
    at = tl.arange(0, PIXELS)
    image = tl.program_id(0)
    while image < images:
        pixel = small + tl.cast(image, tl.int64) * CHANNELS * pixels
        p0, p1, p2, inside = load_pixels(pixel, at, pixels, CHANNELS)
        code = code_of(p0, p1, p2, WIDTH, BINS, CHANNELS)
        if WORDS > 0:
            num_centers = mark_bins(pixel, pixels, notes, WIDTH, BINS, WORDS, CHANNELS, PIXELS)
            rank = rank_of(code, inside, notes, WORDS)
        else:
            num_centers = rank_by_counting(pixel, pixels, notes, WIDTH, BINS, PIXELS, CHANNELS, PIXELS)
            rank = tl.load(notes + 2 * PIXELS + at, mask=inside, other=0)
        write_bin_centers(centers, rank, p0, p1, p2, inside, WIDTH, CAP, CHANNELS)
        for start in range(0, num_centers, BLOCK):
            k = start + tl.arange(0, BLOCK)
            clear_sums(sums, k, k < num_centers, CAP)
        tl.debug_barrier()
        if WORDS > 0:
            owner = rank_of(nearest_bin(p0, p1, p2, code, inside, notes, WIDTH, BINS, CHANNELS), inside, notes, WORDS)
        else:
            search_everywhere(inside, pixels, pixel, centers, num_centers, notes, pixels, PIXELS, CAP, CHANNELS)
            owner = tl.load(notes + PIXELS + at, mask=inside, other=0)
        add_to_sums(sums, owner, p0, p1, p2, 1, inside, CAP)
        tl.debug_barrier()

        # The key's index needs `bits` bits, an even number of them, so that scaled coordinates stay whole.
        half_bits = 1
        while (1 << (2 * half_bits)) < num_centers:
            half_bits += 1
        bits = 2 * half_bits
        scale = tl.cast(1 << half_bits, tl.float32)
        unscale = 1.0 / scale  # a power of two, so both ways are exact
        f0, f1, f2 = p0.to(tl.float32) * scale, p1.to(tl.float32) * scale, p2.to(tl.float32) * scale
        key = tl.full((PIXELS,), NEVER, tl.float32)
        bound = tl.full((PIXELS,), UNBOUNDED, tl.int32)
        step = 0
        while step < lloyd_steps:
            # The first round has seen no distances yet: it lists every centre and trusts no key.
            num_moved, length = list_moved(
                centers, listed, sums, num_centers, scale, step == 0, CAP, ROW, BLOCK, UNROLL
            )  # fmt: skip
            step += 1
            if num_moved == 0:
                step = lloyd_steps
            if step < lloyd_steps:
                # Loaded before the comparisons and used after them, so that they hide its latency.
                owner_moved = tl.load(centers + 3 * CAP + owner, mask=inside, other=0)
                best, second = compare_listed(f0, f1, f2, listed, length, PIXELS, ROW, CHANNELS, UNROLL)
                key = tl.where((owner_moved == 0) & (step > 1), key, NEVER)
                second = tl.minimum(second, tl.maximum(best, key))
                best = tl.minimum(best, key)
                whole = tl.minimum(best, EXACT * 1.0).to(tl.int32)
                winner = whole & ((1 << bits) - 1)
                need = inside & ((whole >= EXACT) | ((whole >> bits) >= bound))
                bound = tl.minimum(bound, tl.minimum(second, EXACT * 1.0).to(tl.int32) >> bits)
                key = best
                # One sum brings both counts: pixels in need below, pixels that changed hands above 2^16.
                changed = inside & (winner != owner)
                counts = tl.sum(need.to(tl.int32) + (changed.to(tl.int32) << 16), 0)
                if (counts & 0xFFFF) > 0:
                    search_everywhere(
                        need, counts & 0xFFFF, pixel, centers, num_centers, notes, pixels, PIXELS, CAP, CHANNELS
                    )
                    found = tl.load(notes + PIXELS + at, mask=need, other=0)
                    distance = tl.load(notes + 2 * PIXELS + at, mask=need, other=0)
                    bound = tl.where(need, tl.load(notes + 3 * PIXELS + at, mask=need, other=0), bound)
                    winner = tl.where(need, found, winner)
                    fits = distance < (EXACT >> bits)
                    exact_key = tl.where(fits, ((distance << bits) + found).to(tl.float32), NEVER)
                    key = tl.where(need, exact_key, key)
                    changed = inside & (winner != owner)
                if counts == 0:
                    step = lloyd_steps  # no pixel changed hands: no centre will move
                else:
                    q0, q1, q2 = (f0 * unscale).to(tl.int32), (f1 * unscale).to(tl.int32), (f2 * unscale).to(tl.int32)
                    add_to_sums(sums, owner, q0, q1, q2, -1, changed, CAP)
                    add_to_sums(sums, winner, q0, q1, q2, 1, changed, CAP)
                    owner = winner
                    tl.debug_barrier()
        write_colors(
            image, centers, sums, num_centers, colors, population, num_colors, most_colors, squared_separation,
            CAP, BLOCK, CHANNELS, BY_POPULATION, AT_LEAST_TWO,
        )  # fmt: skip
        image = next_image(images, taken)


@triton.jit
def list_moved(
    centers, listed, sums, num_centers, scale, list_all,
    CAP: tl.constexpr, ROW: tl.constexpr, BLOCK: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """How many centres moved to the mean of their pixels, and how many are listed: those, or all if `list_all`."""
    num_moved = 0
    for start in range(0, num_centers, BLOCK):
        k = start + tl.arange(0, BLOCK)
        real = k < num_centers
        _, _, _, new0, new1, new2, moved = move_to_means(centers, sums, k, real, CAP)
        one = moved.to(tl.int32)
        tl.store(centers + 3 * CAP + k, one, mask=real)
        place = tl.where(list_all, k, num_moved + tl.cumsum(one, 0) - one)
        which = moved | (real & list_all)
        f0, f1, f2 = new0.to(tl.float32) * scale, new1.to(tl.float32) * scale, new2.to(tl.float32) * scale
        tl.store(listed + place, pack(f0, k.to(tl.float32)), mask=which)
        tl.store(listed + ROW + place, pack(f1, f2), mask=which)
        num_moved += tl.sum(one, 0)
    length = tl.where(list_all, num_centers, num_moved)
    # Centres nobody is near close the list, so that it can be read UNROLL at a time.
    extra = length + tl.arange(0, UNROLL)
    far = tl.full((UNROLL,), FAR, tl.float32)
    tl.store(listed + extra, pack(far, far))
    tl.store(listed + ROW + extra, pack(far, far))
    tl.debug_barrier()
    return num_moved, length


@triton.jit
def compare_listed(
    p0, p1, p2, listed, length,
    PIXELS: tl.constexpr, ROW: tl.constexpr, CHANNELS: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """The two smallest keys of each pixel among the listed centres'; p is scaled."""
    best = tl.full((PIXELS,), NEVER, tl.float32)
    second = best
    for start in range(0, length, UNROLL):
        for step in tl.static_range(UNROLL):
            pair = tl.load(listed + start + step)
            d0 = p0 - low_float(pair)
            key = d0 * d0 + high_float(pair)
            if CHANNELS == 3:
                pair = tl.load(listed + ROW + start + step)
                d1 = p1 - low_float(pair)
                d2 = p2 - high_float(pair)
                key = d2 * d2 + (d1 * d1 + key)
            second = tl.minimum(second, tl.maximum(best, key))
            best = tl.minimum(best, key)
    return best, second


@triton.jit
def search_everywhere(
    need, count, pixel, centers, num_centers, notes, pixels,
    PIXELS: tl.constexpr, CAP: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Leave owner, squared distance and the second smallest one of the `count` pixels in need in rows of `notes`."""
    SOME: tl.constexpr = 16  # hardly ever are more in need, but for the first rounds
    BLOCK: tl.constexpr = 64
    wanted = need.to(tl.int32)
    place = tl.cumsum(wanted, 0) - wanted
    tl.store(notes + place, tl.arange(0, PIXELS), mask=need)
    tl.debug_barrier()
    for start in range(0, count, SOME):
        slot = start + tl.arange(0, SOME)
        real = slot < count
        who = tl.load(notes + slot, mask=real, other=0)
        q0, q1, q2, _ = load_pixels(pixel, who, pixels, CHANNELS)
        # Each column keeps the best of the centres it sees; columns are compared once, after the last.
        best = tl.full((SOME, BLOCK), UNBOUNDED, tl.int32)
        second = best
        owner = tl.zeros((SOME, BLOCK), tl.int32)
        for base in range(0, num_centers, BLOCK):
            k = base + tl.arange(0, BLOCK)
            there = k < num_centers
            d0 = q0[:, None] - tl.load(centers + k, mask=there, other=0)[None, :]
            distance = d0 * d0
            if CHANNELS == 3:
                d1 = q1[:, None] - tl.load(centers + CAP + k, mask=there, other=0)[None, :]
                d2 = q2[:, None] - tl.load(centers + 2 * CAP + k, mask=there, other=0)[None, :]
                distance += d1 * d1 + d2 * d2
            distance = tl.where(there[None, :], distance, UNBOUNDED)
            nearer = distance < best
            second = tl.minimum(second, tl.maximum(best, distance))
            owner = tl.where(nearer, k[None, :], owner)
            best = tl.minimum(best, distance)
        least = tl.min(best, 1)
        first = tl.min(tl.where(best == least[:, None], owner, UNBOUNDED), 1)
        others = tl.min(tl.where((best == least[:, None]) & (owner == first[:, None]), second, best), 1)
        tl.store(notes + PIXELS + who, first, mask=real)
        tl.store(notes + 2 * PIXELS + who, least, mask=real)
        tl.store(notes + 3 * PIXELS + who, others, mask=real)
    tl.debug_barrier()
