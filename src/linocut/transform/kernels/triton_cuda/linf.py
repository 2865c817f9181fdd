"""Triton kernel of the fixed codebook: the nearest code in L-infinity."""

import triton
import triton.language as tl

FULL_SCALE = tl.constexpr(2040.0)


@triton.jit
def paint_linf_kernel(y, colors, painted, pixels, num_colors, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """A block of one image's pixels, each its nearest code; the first of equals, as codes come in order."""
    blocks = tl.cdiv(pixels, BLOCK)
    image = (tl.program_id(0) // blocks).to(tl.int64)
    y += image * CHANNELS * pixels
    painted += image * CHANNELS * pixels
    at = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = at < pixels
    p0 = tl.load(y + at, mask=inside, other=0).to(tl.int32)
    p1 = p0
    p2 = p0
    if CHANNELS == 3:
        p1 = tl.load(y + pixels + at, mask=inside, other=0).to(tl.int32)
        p2 = tl.load(y + 2 * pixels + at, mask=inside, other=0).to(tl.int32)
    best = tl.full((BLOCK,), 2147483647, tl.int32)
    label = tl.zeros((BLOCK,), tl.int32)
    for k in range(num_colors):
        distance = tl.abs(p0 - tl.load(colors + CHANNELS * k).to(tl.int32))
        if CHANNELS == 3:
            distance = tl.maximum(distance, tl.abs(p1 - tl.load(colors + CHANNELS * k + 1).to(tl.int32)))
            distance = tl.maximum(distance, tl.abs(p2 - tl.load(colors + CHANNELS * k + 2).to(tl.int32)))
        nearer = distance < best
        best = tl.where(nearer, distance, best)
        label = tl.where(nearer, k, label)
    for channel in tl.static_range(CHANNELS):
        value = tl.load(colors + CHANNELS * label + channel, mask=inside, other=0).to(tl.float32)
        tl.store(painted + channel * pixels + at, tl.div_rn(value, FULL_SCALE), mask=inside)
