"""Triton functions of Lloyd's rounds for many images: pixels sorted by bin, in groups that look again together.

Two things spare work, and neither changes a bit of the result:

- *Slabs.* Clusters in bin order are nearly sorted by the first channel. If no pixel of a group is farther than r from
  its cluster, a centre whose first channel differs by more than r cannot win: a stretch of the centres is searched.
- *Stillness.* A group whose surroundings no moving centre touched keeps its owners without being looked at.

Scratch memory is one slice for each program, besides `clusters.py`'s: `table`: for each centre two int64, each a pair
of float32: -2c for each channel and |c|². `moves`: four int32 rows, for each centre that moved the span
lowest + 2^16 highest of each channel, and a whole number not below the length of the move. `groups`: nine int32 rows,
lowest and highest of each channel, the reach; then a list of groups, and how far a centre near each moved.
"""

import triton
import triton.language as tl

from linocut.transform.kernels.triton_cuda.clusters import add_to_sums, high_float, low_float, move_to_means, pack

NEVER = tl.constexpr(1.0e30)  # above every score
NOWHERE = tl.constexpr(-32769)  # the span of a move that touches nothing: lowest 32767, highest -1


@triton.jit
def unpack_pixels(sorted_pixels, at, inside, PIXELS: tl.constexpr):
    """Coordinates and owner of sorted pixels."""
    first = tl.load(sorted_pixels + at, mask=inside, other=0)
    last = tl.load(sorted_pixels + PIXELS + at, mask=inside, other=0)
    return first & 0xFFFF, first >> 16, last & 0xFFFF, last >> 16


@triton.jit
def survey_groups(
    sorted_pixels, pixels, num_groups, groups, PIXELS: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr,
    WIDTH: tl.constexpr,
):  # fmt: skip
    """Write each group's box and first reach: half a cube's diagonal is less than its side."""
    for g in range(num_groups):
        at = g * GROUP + tl.arange(0, GROUP)
        inside = at < pixels
        p0, p1, p2, _ = unpack_pixels(sorted_pixels, at, inside, PIXELS)
        tl.store(groups + g, tl.min(tl.where(inside, p0, 4096), 0))
        tl.store(groups + GROUPS + g, tl.max(p0, 0))
        tl.store(groups + 2 * GROUPS + g, tl.min(tl.where(inside, p1, 4096), 0))
        tl.store(groups + 3 * GROUPS + g, tl.max(p1, 0))
        tl.store(groups + 4 * GROUPS + g, tl.min(tl.where(inside, p2, 4096), 0))
        tl.store(groups + 5 * GROUPS + g, tl.max(p2, 0))
        tl.store(groups + 6 * GROUPS + g, WIDTH)
    tl.debug_barrier()


@triton.jit
def write_table(table, k, c0, c1, c2, which):
    """Put centres into the table of -2c and |c|²."""
    f0, f1, f2 = c0.to(tl.float32), c1.to(tl.float32), c2.to(tl.float32)
    tl.store(table + 2 * k, pack(-2.0 * f0, -2.0 * f1), mask=which)
    tl.store(table + 2 * k + 1, pack(-2.0 * f2, f0 * f0 + f1 * f1 + f2 * f2), mask=which)


@triton.jit
def close_table(table, num_centers, UNROLL: tl.constexpr):
    """Pad the table with centres that never win, so that it can be read UNROLL at a time."""
    extra = num_centers + tl.arange(0, UNROLL)
    nothing = tl.zeros((UNROLL,), tl.float32)
    tl.store(table + 2 * extra, pack(nothing, nothing))
    tl.store(table + 2 * extra + 1, pack(nothing, nothing + NEVER))


@triton.jit
def move_centers(
    centers, table, sums, moves, num_centers, write_all, CAP: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """How many centres moved to the mean of their pixels; their moves are listed."""
    num_moved = 0
    for start in range(0, num_centers, BLOCK):
        k = start + tl.arange(0, BLOCK)
        real = k < num_centers
        old0, old1, old2, new0, new1, new2, moved = move_to_means(centers, sums, k, real, CAP)
        write_table(table, k, new0, new1, new2, moved | (real & write_all))
        one = moved.to(tl.int32)
        place = num_moved + tl.cumsum(one, 0) - one
        squared = (new0 - old0) * (new0 - old0) + (new1 - old1) * (new1 - old1) + (new2 - old2) * (new2 - old2)
        tl.store(moves + place, tl.minimum(old0, new0) | (tl.maximum(old0, new0) << 16), mask=moved)
        tl.store(moves + CAP + place, tl.minimum(old1, new1) | (tl.maximum(old1, new1) << 16), mask=moved)
        tl.store(moves + 2 * CAP + place, tl.minimum(old2, new2) | (tl.maximum(old2, new2) << 16), mask=moved)
        tl.store(moves + 3 * CAP + place, tl.sqrt(squared.to(tl.float32)).to(tl.int32) + 1, mask=moved)
        num_moved += tl.sum(one, 0)
    tl.debug_barrier()
    return num_moved


@triton.jit
def meets(span, low, high):
    """Whether spans (m) meet the stretches low..high (g): (g, m)."""
    return ((span & 0xFFFF)[None, :] <= high[:, None]) & ((span >> 16)[None, :] >= low[:, None])


@triton.jit
def look_for_moves(moves, num_moved, groups, num_groups, CAP: tl.constexpr, GROUPS: tl.constexpr):
    """How many groups must look again: those near which a centre moved. They are listed, with how far at most."""
    MOVES: tl.constexpr = 32
    g = tl.arange(0, GROUPS)
    reach = tl.load(groups + 6 * GROUPS + g)
    low0, high0 = tl.load(groups + g) - reach, tl.load(groups + GROUPS + g) + reach
    low1, high1 = tl.load(groups + 2 * GROUPS + g) - reach, tl.load(groups + 3 * GROUPS + g) + reach
    low2, high2 = tl.load(groups + 4 * GROUPS + g) - reach, tl.load(groups + 5 * GROUPS + g) + reach
    farthest = tl.zeros((GROUPS,), tl.int32)
    for start in range(0, num_moved, MOVES):
        m = start + tl.arange(0, MOVES)
        real = m < num_moved
        touched = meets(tl.load(moves + m, mask=real, other=NOWHERE), low0, high0)
        touched &= meets(tl.load(moves + CAP + m, mask=real, other=NOWHERE), low1, high1)
        touched &= meets(tl.load(moves + 2 * CAP + m, mask=real, other=NOWHERE), low2, high2)
        length = tl.load(moves + 3 * CAP + m, mask=real, other=0)
        farthest = tl.maximum(farthest, tl.max(tl.where(touched, length[None, :], 0), 1))
    return list_groups(groups, farthest, (farthest > 0) & (g < num_groups), GROUPS)


@triton.jit
def list_groups(groups, farther, which, GROUPS: tl.constexpr):
    """How many groups are listed as those that look, with how much farther than their reach."""
    one = which.to(tl.int32)
    place = tl.cumsum(one, 0) - one
    tl.store(groups + 7 * GROUPS + place, tl.arange(0, GROUPS), mask=which)
    tl.store(groups + 8 * GROUPS + place, farther, mask=which)
    tl.debug_barrier()
    return tl.sum(one, 0)


@triton.jit
def search_groups(
    num_listed, sorted_pixels, pixels, groups, centers, table, sums, num_centers,
    PIXELS: tl.constexpr, CAP: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr, ROWS: tl.constexpr,
    BLOCK: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """1 if a pixel changed hands, else 0, once all pixels of the listed groups have found their nearest centres.

    ROWS groups at a time, a warp for each; the books of the clusters concerned are kept.
    """
    any_change = 0
    for start in range(0, num_listed, ROWS):
        slot = start + tl.arange(0, ROWS)
        listed = slot < num_listed
        g = tl.load(groups + 7 * GROUPS + slot, mask=listed, other=0)
        around = tl.load(groups + 6 * GROUPS + g) + tl.load(groups + 8 * GROUPS + slot, mask=listed, other=0)
        first, last = stretch(
            centers, num_centers, tl.load(groups + g) - around, tl.load(groups + GROUPS + g) + around, CAP, ROWS, BLOCK
        )
        at = g[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
        inside = (at < pixels) & listed[:, None]
        p0, p1, p2, owner = unpack_pixels(sorted_pixels, at, inside, PIXELS)
        f0, f1, f2 = p0.to(tl.float32), p1.to(tl.float32), p2.to(tl.float32)
        best = tl.full((ROWS, GROUP), NEVER, tl.float32)
        label = tl.zeros((ROWS, GROUP), tl.int32)
        # Addresses for every pixel, not every row: so each warp loads for itself, and no barrier is in the loop.
        # All rows take as many steps as the longest stretch; one that would run off the end starts earlier.
        length = tl.max(last - first, 0) + 1
        first = tl.maximum(tl.minimum(first, num_centers - length), 0)
        stretch_table = tl.broadcast_to((table + 2 * first)[:, None], (ROWS, GROUP))
        for j in range(0, length, UNROLL):
            here = stretch_table + 2 * j
            for step in tl.static_range(UNROLL):
                # |c|² - 2 c·p orders centres as the distance does; every partial sum is a whole number below 2^24.
                pair = tl.load(here + 2 * step)
                tail = tl.load(here + (2 * step + 1))
                score = high_float(tail) + low_float(tail) * f2
                score += high_float(pair) * f1
                score += low_float(pair) * f0
                nearer = score < best
                best = tl.where(nearer, score, best)
                label = tl.where(nearer, j + step, label)
        label += first[:, None]
        worst = tl.max(tl.where(inside, best + (f0 * f0 + f1 * f1 + f2 * f2), 0.0), 1)
        tl.store(groups + 6 * GROUPS + g, tl.sqrt(worst).to(tl.int32) + 1, mask=listed)
        changed = inside & (label != owner)
        change = tl.max(tl.max(changed.to(tl.int32), 1), 0)
        if change > 0:
            add_to_sums(sums, owner, p0, p1, p2, -1, changed, CAP)
            add_to_sums(sums, label, p0, p1, p2, 1, changed, CAP)
            tl.store(sorted_pixels + PIXELS + at, p2 | (label << 16), mask=changed)
        any_change = tl.maximum(any_change, change)
    tl.debug_barrier()
    return any_change


@triton.jit
def stretch(centers, num_centers, low, high, CAP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """First and last centre whose first channel lies in low..high, for each row."""
    first = tl.full((ROWS,), CAP, tl.int32)
    last = tl.full((ROWS,), -1, tl.int32)
    for start in range(0, num_centers, BLOCK):
        k = start + tl.arange(0, BLOCK)
        c0 = tl.load(centers + k, mask=k < num_centers, other=1 << 20)[None, :]
        near = (c0 >= low[:, None]) & (c0 <= high[:, None])
        first = tl.minimum(first, tl.min(tl.where(near, k[None, :], CAP), 1))
        last = tl.maximum(last, tl.max(tl.where(near, k[None, :], -1), 1))
    return first, last
