"""Triton kernels of the adaptive blur and its transpose: matrix products of a window with the tables of filters.py.

Products are exact where they must be. A pixel (at most 2040) and every weight are whole numbers that float16 holds;
sums stay below 2^24 in float32. The sum over one axis is cut into quotient and rest by 2^s before the other axis, so
that float16 holds both again. The transpose works on any float32: it cuts each number in two that TF32 holds.
"""

import triton
import triton.language as tl

FULL_SCALE = tl.constexpr(2040.0)
ROUNDER = tl.constexpr(8388608.0)  # 2^23: adding it leaves no fraction bits, so the sum rounds half to even


@triton.jit
def to_eighths(x):
    """Unit floats as whole eighths of a level; NaN is 0."""
    x = tl.where(x == x, x, 0.0)
    x = tl.minimum(tl.maximum(x, 0.0), 1.0)
    bits = (x * FULL_SCALE + ROUNDER).to(tl.int32, bitcast=True)
    return bits & 0x7FFFFF


@triton.jit
def enter_kernel(x, eighths, count, BLOCK: tl.constexpr):
    """Unit floats to eighths, one for one."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(eighths + at, to_eighths(tl.load(x + at, mask=inside, other=0.0)).to(tl.int16), mask=inside)


@triton.jit
def window(
    windows_down, windows_across, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr
):
    """This program's plane, its window's place down and across, and the window's rows and columns in the plane."""
    place = tl.program_id(0) % (windows_down * windows_across)
    plane = (tl.program_id(0) // (windows_down * windows_across)).to(tl.int64)
    down = place // windows_across
    across = place % windows_across
    row = down * (ROWS - 2 * DOWN) - DOWN + tl.arange(0, ROWS)[:, None]
    column = across * (COLUMNS - 2 * ACROSS) - ACROSS + tl.arange(0, COLUMNS)[None, :]
    return plane, down, across, row, column


@triton.jit
def is_kept(
    row, column, down, across, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr
):
    """Where a window's result counts: outside its margins."""
    top = down * (ROWS - 2 * DOWN)
    left = across * (COLUMNS - 2 * ACROSS)
    rows_kept = (row >= top) & (row < top + ROWS - 2 * DOWN)
    return rows_kept & (column >= left) & (column < left + COLUMNS - 2 * ACROSS)


@triton.jit
def filter_table(filters, window_at, n, COUNT: tl.constexpr, SIZE: tl.constexpr):
    """Filter n of a window: row p, column q."""
    at = tl.arange(0, SIZE)
    return tl.load(filters + (window_at * COUNT + n) * SIZE * SIZE + at[:, None] * SIZE + at[None, :])


@triton.jit
def turned_table(filters, window_at, n, COUNT: tl.constexpr, SIZE: tl.constexpr):
    """The same with rows and columns exchanged: row q, column p."""
    at = tl.arange(0, SIZE)
    return tl.load(filters + (window_at * COUNT + n) * SIZE * SIZE + at[None, :] * SIZE + at[:, None])


@triton.jit
def blur_kernel(
    x,
    down_filters,
    across_filters,
    blurred,
    level,
    height,
    width,
    windows_down,
    windows_across,
    LIMITS: tl.constexpr,
    SHIFTS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DOWN: tl.constexpr,
    ACROSS: tl.constexpr,
):
    """One window of one channel of one image: eighths, edges, kernel choice and every blur. DOWN, ACROSS: margins."""
    KERNELS: tl.constexpr = len(SHIFTS)
    COUNT: tl.constexpr = KERNELS + 2
    plane, down, across, row, column = window(windows_down, windows_across, ROWS, COLUMNS, DOWN, ACROSS)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    here = plane * height * width + row * width + column
    entered = to_eighths(tl.load(x + here, mask=inside, other=0.0))
    image = entered.to(tl.float16)

    choice = tl.zeros((ROWS, COLUMNS), tl.int32)
    if KERNELS > 1:
        # The differences come first: they stay within 2040, which float16 holds.
        rise = tl.dot(image, turned_table(across_filters, across, KERNELS + 1, COUNT, COLUMNS))
        rise = tl.dot(filter_table(down_filters, down, KERNELS, COUNT, ROWS), rise.to(tl.float16)).to(tl.int32)
        drop = tl.dot(filter_table(down_filters, down, KERNELS + 1, COUNT, ROWS), image)
        drop = tl.dot(drop.to(tl.float16), turned_table(across_filters, across, KERNELS, COUNT, COLUMNS)).to(tl.int32)
        strength = rise * rise + drop * drop
        for k in tl.static_range(KERNELS - 1):
            choice += (strength > LIMITS[k]).to(tl.int32)

    result = tl.zeros((ROWS, COLUMNS), tl.int32)
    for k in tl.static_range(KERNELS):
        if SHIFTS[k] == 0:
            rounded = entered
        else:
            line = tl.dot(image, turned_table(across_filters, across, k, COUNT, COLUMNS))
            quotient = tl.floor(line * (1.0 / (1 << SHIFTS[k])))
            rest = line - quotient * (1 << SHIFTS[k])
            table = filter_table(down_filters, down, k, COUNT, ROWS)
            high = tl.dot(table, quotient.to(tl.float16)).to(tl.int32)
            low = tl.dot(table, rest.to(tl.float16)).to(tl.int32)
            # int32 holds every sum: 2040 * 2^20 plus the half that rounds it is below 2^31.
            rounded = ((high << SHIFTS[k]) + low + (1 << (2 * SHIFTS[k] - 1))) >> (2 * SHIFTS[k])
        result = tl.where(choice == k, rounded, result)
    kept = inside & is_kept(row, column, down, across, ROWS, COLUMNS, DOWN, ACROSS)
    tl.store(blurred + here, result.to(tl.int16), mask=kept)
    tl.store(level + here, choice.to(tl.uint8), mask=kept)


@triton.jit
def first_part(value):
    """The nearest number that TF32 holds."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def spread_kernel(
    grad,
    level,
    down_filters,
    across_filters,
    spread,
    height,
    width,
    windows_down,
    windows_across,
    SHIFTS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DOWN: tl.constexpr,
    ACROSS: tl.constexpr,
):
    """One window of one channel's gradient, each pixel spread over what its kernel read. No atomics: the same bits."""
    KERNELS: tl.constexpr = len(SHIFTS)
    COUNT: tl.constexpr = KERNELS + 2
    plane, down, across, row, column = window(windows_down, windows_across, ROWS, COLUMNS, DOWN, ACROSS)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    here = plane * height * width + row * width + column
    given = tl.load(grad + here, mask=inside, other=0.0)
    choice = tl.load(level + here, mask=inside, other=0).to(tl.int32)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for k in tl.static_range(KERNELS):
        chosen = tl.where(choice == k, given, 0.0)
        if SHIFTS[k] == 0:
            total += chosen
        else:
            table = filter_table(across_filters, across, k, COUNT, COLUMNS).to(tl.float32)
            part = first_part(chosen)
            line = tl.dot(part, table, input_precision="tf32")
            line = tl.dot(first_part(chosen - part), table, line, input_precision="tf32")
            table = turned_table(down_filters, down, k, COUNT, ROWS).to(tl.float32)
            part = first_part(line)
            both = tl.dot(table, part, input_precision="tf32")
            both = tl.dot(table, first_part(line - part), both, input_precision="tf32")
            total += both * (1.0 / (1 << (2 * SHIFTS[k])))
    kept = inside & is_kept(row, column, down, across, ROWS, COLUMNS, DOWN, ACROSS)
    tl.store(spread + here, total, mask=kept)
