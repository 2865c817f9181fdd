"""Triton kernel of the soft codebook's slope: two rounds over the colours, nothing kept for each pixel and colour."""

import triton
import triton.language as tl


@triton.jit
def slope_of(gap, size, largest):
    """Where a channel holds the largest difference, and the sign it has there."""
    holds = (size == largest) & (largest > 0)
    return tl.where(holds, tl.where(gap > 0, 1.0, -1.0), 0.0)


@triton.jit
def soft_kernel(
    grad, y, palette, num_colors, back, pixels, palette_stride, rate, CHANNELS: tl.constexpr, BLOCK: tl.constexpr
):
    """A block of one image's pixels. rate: the softness per eighth. Palettes lie palette_stride apart, 0 if shared."""
    blocks = tl.cdiv(pixels, BLOCK)
    image = (tl.program_id(0) // blocks).to(tl.int64)
    y += image * CHANNELS * pixels
    grad += image * CHANNELS * pixels
    back += image * CHANNELS * pixels
    palette += image * palette_stride
    at = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = at < pixels
    count = tl.load(num_colors + image)
    p0 = tl.load(y + at, mask=inside, other=0).to(tl.float32)
    g0 = tl.load(grad + at, mask=inside, other=0.0)
    p1, p2, g1, g2 = p0, p0, g0, g0
    if CHANNELS == 3:
        p1 = tl.load(y + pixels + at, mask=inside, other=0).to(tl.float32)
        p2 = tl.load(y + 2 * pixels + at, mask=inside, other=0).to(tl.float32)
        g1 = tl.load(grad + pixels + at, mask=inside, other=0.0)
        g2 = tl.load(grad + 2 * pixels + at, mask=inside, other=0.0)
    least = tl.full((BLOCK,), 1e6, tl.float32)
    for k in range(count):
        largest = tl.abs(p0 - tl.load(palette + CHANNELS * k).to(tl.float32))
        if CHANNELS == 3:
            largest = tl.maximum(largest, tl.abs(p1 - tl.load(palette + CHANNELS * k + 1).to(tl.float32)))
            largest = tl.maximum(largest, tl.abs(p2 - tl.load(palette + CHANNELS * k + 2).to(tl.float32)))
        least = tl.minimum(least, largest)
    total = tl.zeros((BLOCK,), tl.float32)
    pulled, a0, a1, a2, b0, b1, b2 = total, total, total, total, total, total, total
    for k in range(count):
        d0 = p0 - tl.load(palette + CHANNELS * k).to(tl.float32)
        m0 = tl.abs(d0)
        largest = m0
        pull = -g0 * d0  # relative to the pixel: what all pulls have in common does not change the slope
        d1, d2, m1, m2 = d0, d0, m0, m0
        if CHANNELS == 3:
            d1 = p1 - tl.load(palette + CHANNELS * k + 1).to(tl.float32)
            d2 = p2 - tl.load(palette + CHANNELS * k + 2).to(tl.float32)
            m1, m2 = tl.abs(d1), tl.abs(d2)
            largest = tl.maximum(tl.maximum(m0, m1), m2)
            pull = pull - g1 * d1 - g2 * d2
        weight = tl.exp(rate * (least - largest))
        total += weight
        pulled += weight * pull
        e0 = slope_of(d0, m0, largest)
        share = weight
        if CHANNELS == 3:
            e1 = slope_of(d1, m1, largest)
            e2 = slope_of(d2, m2, largest)
            share = weight / tl.maximum(tl.abs(e0) + tl.abs(e1) + tl.abs(e2), 1.0)
            e1 = e1 * share
            e2 = e2 * share
            b1 += e1
            b2 += e2
            a1 += e1 * pull
            a2 += e2 * pull
        e0 = e0 * share
        b0 += e0
        a0 += e0 * pull
    mean = pulled / total
    tl.store(back + at, -rate * (a0 - mean * b0) / total, mask=inside)
    if CHANNELS == 3:
        tl.store(back + pixels + at, -rate * (a1 - mean * b1) / total, mask=inside)
        tl.store(back + 2 * pixels + at, -rate * (a2 - mean * b2) / total, mask=inside)
