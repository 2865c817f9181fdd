"""Triton kernels at both ends of the codebook: the thumbnail it is found on, and the painting of the image."""

import triton
import triton.language as tl

FULL_SCALE = tl.constexpr(2040.0)


@triton.jit
def overlap(pixel, cell, length, cells):
    """How much of a pixel lies in a cell, in 1/cells of a pixel."""
    return tl.maximum(
        tl.minimum((pixel + 1) * cells, (cell + 1) * length) - tl.maximum(pixel * cells, cell * length), 0
    )


@triton.jit
def thumbnail_kernel(y, small, height, width, rows, columns, CELLS: tl.constexpr):
    """One row of cells of one channel: the image's exact area average, rounded half up."""
    plane = (tl.program_id(0) // rows).to(tl.int64)
    y += plane * height * width
    i = tl.program_id(0) % rows
    j = tl.arange(0, CELLS)
    kept = j < columns
    first = i * height // rows
    last = ((i + 1) * height + rows - 1) // rows
    start = j * width // columns
    most = (width + columns - 1) // columns + 1
    total = tl.zeros((CELLS,), tl.int64)
    for row in range(first, last):
        line = tl.zeros((CELLS,), tl.int32)
        for step in range(most):
            column = start + step
            share = overlap(column, j, width, columns)
            there = kept & (column < width) & (share > 0)
            line += share * tl.load(y + tl.cast(row, tl.int64) * width + column, mask=there, other=0).to(tl.int32)
        total += tl.cast(overlap(row, i, height, rows), tl.int64) * line
    area = tl.cast(height, tl.int64) * width
    tl.store(small + (plane * rows + i) * columns + j, ((2 * total + area) // (2 * area)).to(tl.int16), mask=kept)


@triton.jit
def paint_kernel(y, palette, num_colors, painted, pixels, most_colors, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """A block of one image's pixels, each its nearest colour; the first of equals, as colours come in order."""
    blocks = tl.cdiv(pixels, BLOCK)
    image = (tl.program_id(0) // blocks).to(tl.int64)
    y += image * CHANNELS * pixels
    painted += image * CHANNELS * pixels
    palette += image * CHANNELS * most_colors
    at = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = at < pixels
    p0 = tl.load(y + at, mask=inside, other=0).to(tl.float32)
    p1 = p0
    p2 = p0
    if CHANNELS == 3:
        p1 = tl.load(y + pixels + at, mask=inside, other=0).to(tl.float32)
        p2 = tl.load(y + 2 * pixels + at, mask=inside, other=0).to(tl.float32)
    best = tl.full((BLOCK,), float("inf"), tl.float32)
    label = tl.zeros((BLOCK,), tl.int32)
    for k in range(tl.load(num_colors + image)):
        # |c|² - 2 c·p orders colours as the distance does; every partial sum is a whole number below 2^24.
        c0 = tl.load(palette + CHANNELS * k).to(tl.float32)
        score = c0 * c0 - 2.0 * c0 * p0
        if CHANNELS == 3:
            c1 = tl.load(palette + CHANNELS * k + 1).to(tl.float32)
            c2 = tl.load(palette + CHANNELS * k + 2).to(tl.float32)
            score = (c0 * c0 + c1 * c1 + c2 * c2) - 2.0 * c0 * p0 - 2.0 * c1 * p1 - 2.0 * c2 * p2
        nearer = score < best
        best = tl.where(nearer, score, best)
        label = tl.where(nearer, k, label)
    for channel in tl.static_range(CHANNELS):
        value = tl.load(palette + CHANNELS * label + channel, mask=inside, other=0).to(tl.float32)
        tl.store(painted + channel * pixels + at, tl.div_rn(value, FULL_SCALE), mask=inside)
