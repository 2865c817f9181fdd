"""Triton kernels of the adaptive blur: enter, edges, kernel choice and all blurs in one pass, and the transpose."""

# mypy: ignore-errors
# Triton's tuples grow inside loops that are unrolled when it compiles; Python's type rules do not know that.

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
def mirror(position, length, TINY: tl.constexpr):
    """The position inside 0..length-1 that this one mirrors (reflect-101). TINY: sides that are mirrored repeatedly."""
    if TINY:
        period = tl.maximum(2 * (length - 1), 1)
        position = tl.abs(position) % period
        return tl.where(length == 1, 0, tl.minimum(position, period - position))
    position = tl.abs(position)
    return tl.minimum(position, tl.abs(2 * (length - 1) - position))


@triton.jit
def enter_kernel(x, eighths, count, BLOCK: tl.constexpr):
    """Unit floats to eighths, one for one."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(eighths + at, to_eighths(tl.load(x + at, mask=inside, other=0.0)).to(tl.int16), mask=inside)


@triton.jit
def blur_kernel(
    x,
    eighths,
    blurred,
    level,
    height,
    width,
    tiles_down,
    tiles_across,
    LIMITS: tl.constexpr,
    WEIGHTS: tl.constexpr,
    SHIFTS: tl.constexpr,
    ENTER: tl.constexpr,
    TINY: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """One tile of one channel of one image. ENTER: the tile is the whole channel and its eighths are made here.

    WEIGHTS holds a row of weights for each kernel, all padded with zeros to the largest; every tap is read once.
    """
    KERNELS: tl.constexpr = len(WEIGHTS)
    SIZE: tl.constexpr = len(WEIGHTS[0])
    HALF: tl.constexpr = SIZE // 2
    tile = tl.program_id(0) % (tiles_down * tiles_across)
    plane = (tl.program_id(0) // (tiles_down * tiles_across)).to(tl.int64) * height * width
    x += plane
    eighths += plane
    row = (tile // tiles_across) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % tiles_across) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < height) & (column < width)
    here = row * width + column
    if ENTER:
        entered = to_eighths(tl.load(x + here, mask=inside, other=0.0))
        tl.store(eighths + here, entered.to(tl.int16), mask=inside)
        tl.debug_barrier()

    choice = tl.zeros((ROWS, COLUMNS), tl.int32)
    if KERNELS > 1:
        above = mirror(row - 1, height, TINY) * width
        below = mirror(row + 1, height, TINY) * width
        left = mirror(column - 1, width, TINY)
        right = mirror(column + 1, width, TINY)
        middle = row * width
        nw = tl.load(eighths + above + left, mask=inside, other=0).to(tl.int32)
        ne = tl.load(eighths + above + right, mask=inside, other=0).to(tl.int32)
        sw = tl.load(eighths + below + left, mask=inside, other=0).to(tl.int32)
        se = tl.load(eighths + below + right, mask=inside, other=0).to(tl.int32)
        n = tl.load(eighths + above + column, mask=inside, other=0).to(tl.int32)
        s = tl.load(eighths + below + column, mask=inside, other=0).to(tl.int32)
        w = tl.load(eighths + middle + left, mask=inside, other=0).to(tl.int32)
        e = tl.load(eighths + middle + right, mask=inside, other=0).to(tl.int32)
        gx = ne - nw + 2 * (e - w) + se - sw
        gy = sw - nw + 2 * (s - n) + se - ne
        strength = gx * gx + gy * gy
        for k in tl.static_range(KERNELS - 1):
            choice += (strength > LIMITS[k]).to(tl.int32)

    # int32 holds every sum: 2040 * 2^20 plus the half that rounds it is below 2^31.
    sums = ()
    for _ in tl.static_range(KERNELS):
        sums = sums + (tl.zeros((ROWS, COLUMNS), tl.int32),)  # noqa: RUF005
    for down in range(SIZE):
        line = mirror(row + down - HALF, height, TINY) * width
        across = ()
        for _ in tl.static_range(KERNELS):
            across = across + (tl.zeros((ROWS, COLUMNS), tl.int32),)  # noqa: RUF005
        for i in tl.static_range(SIZE):
            there = line + mirror(column + i - HALF, width, TINY)
            value = tl.load(eighths + there, mask=inside, other=0).to(tl.int32)
            more = ()
            for k in tl.static_range(KERNELS):
                if WEIGHTS[k][i] == 0:  # noqa: SIM108
                    more = more + (across[k],)  # noqa: RUF005
                else:
                    more = more + (across[k] + WEIGHTS[k][i] * value,)  # noqa: RUF005
            across = more
        total = ()
        for k in tl.static_range(KERNELS):
            weight = 0
            for i in tl.static_range(SIZE):
                weight = tl.where(down == i, WEIGHTS[k][i], weight)
            total = total + (sums[k] + weight * across[k],)  # noqa: RUF005
        sums = total

    result = tl.zeros((ROWS, COLUMNS), tl.int32)
    for k in tl.static_range(KERNELS):
        if SHIFTS[k] == 0:  # noqa: SIM108 (Triton decides it when it compiles)
            rounded = sums[k]
        else:
            rounded = (sums[k] + (1 << (2 * SHIFTS[k] - 1))) >> (2 * SHIFTS[k])
        result = tl.where(choice == k, rounded, result)
    tl.store(blurred + plane + here, result.to(tl.int16), mask=inside)
    tl.store(level + plane + here, choice.to(tl.uint8), mask=inside)


@triton.jit
def spread_kernel(
    grad,
    level,
    spread,
    height,
    width,
    tiles_down,
    tiles_across,
    WEIGHTS: tl.constexpr,
    SHIFTS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Each gradient spread over what its kernel read, on the image with its mirrored margin still unfolded."""
    KERNELS: tl.constexpr = len(WEIGHTS)
    SIZE: tl.constexpr = len(WEIGHTS[0])
    HALF: tl.constexpr = SIZE // 2
    tile = tl.program_id(0) % (tiles_down * tiles_across)
    plane = (tl.program_id(0) // (tiles_down * tiles_across)).to(tl.int64)
    grad += plane * height * width
    level += plane * height * width
    row = (tile // tiles_across) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % tiles_across) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for down in range(SIZE):
        y = row - down  # margins count from 0 here, so output pixel y read rows y .. y + SIZE - 1
        vertical = ()
        for k in tl.static_range(KERNELS):
            weight = 0.0
            for i in tl.static_range(SIZE):
                weight = tl.where(down == i, WEIGHTS[k][i] / (1 << (2 * SHIFTS[k])), weight)
            vertical = vertical + (weight,)  # noqa: RUF005
        for i in tl.static_range(SIZE):
            x = column - i
            there = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            value = tl.load(grad + y * width + x, mask=there, other=0.0)
            choice = tl.load(level + y * width + x, mask=there, other=0).to(tl.int32)
            factor = tl.zeros((ROWS, COLUMNS), tl.float32)
            for k in tl.static_range(KERNELS):
                if WEIGHTS[k][i] != 0:
                    factor = tl.where(choice == k, vertical[k] * WEIGHTS[k][i], factor)
            total += factor * value
    wide = width + 2 * HALF
    inside = (row < height + 2 * HALF) & (column < wide)
    spread += plane * (height + 2 * HALF) * wide
    tl.store(spread + row * wide + column, total, mask=inside)


@triton.jit
def reflection(position, n, length):
    """The n-th place whose mirror image is `position`: q, -q, q+P, P-q, q-P, -q-P, ... with P the period.

    Where the end of a side makes two of these one place, the second is put out of reach.
    """
    period = tl.maximum(2 * (length - 1), 1)
    turn = n // 2
    turn = tl.where(turn % 2 == 1, (turn + 1) // 2, -(turn // 2))
    if n % 2 == 0:
        place = position + turn * period
    else:
        place = tl.where((position == 0) | (position == length - 1), 1 << 30, turn * period - position)
    return place


@triton.jit
def fold_kernel(
    spread,
    folded,
    height,
    width,
    tiles_down,
    tiles_across,
    reflections_down,
    reflections_across,
    HALF: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """The mirrored margin added to the pixels it mirrors, in a fixed order."""
    tile = tl.program_id(0) % (tiles_down * tiles_across)
    plane = (tl.program_id(0) // (tiles_down * tiles_across)).to(tl.int64)
    wide = width + 2 * HALF
    spread += plane * (height + 2 * HALF) * wide
    row = (tile // tiles_across) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % tiles_across) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < height) & (column < width)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for n in range(reflections_down):
        y = reflection(row, n, height) + HALF
        reached = inside & (y >= 0) & (y < height + 2 * HALF)
        for m in range(reflections_across):
            x = reflection(column, m, width) + HALF
            there = reached & (x >= 0) & (x < wide)
            total += tl.load(spread + y * wide + x, mask=there, other=0.0)
    tl.store(folded + plane * height * width + row * width + column, total, mask=inside)
