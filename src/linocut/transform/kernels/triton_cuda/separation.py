"""Triton functions that end an image, for few images and for many: which clusters are kept as its colours."""

import triton
import triton.language as tl


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


@triton.jit
def write_colors(
    image,
    centers,
    sums,
    num_centers,
    colors,
    population,
    num_colors,
    most_colors,
    squared_separation,
    CAP: tl.constexpr,
    BLOCK: tl.constexpr,
    CHANNELS: tl.constexpr,
    BY_POPULATION: tl.constexpr,
    AT_LEAST_TWO: tl.constexpr,
):
    """Write the image's colours, their populations and their number, and zeros behind them."""
    row = tl.cast(image, tl.int64) * most_colors
    population += row
    colors += row * CHANNELS
    if num_centers <= BLOCK:
        kept = separate(
            centers, sums, num_centers, colors, population, squared_separation,
            CAP, BLOCK, CHANNELS, BY_POPULATION, AT_LEAST_TWO,
        )  # fmt: skip
    elif num_centers <= 2 * BLOCK:
        kept = separate(
            centers, sums, num_centers, colors, population, squared_separation,
            CAP, 2 * BLOCK, CHANNELS, BY_POPULATION, AT_LEAST_TWO,
        )  # fmt: skip
    else:
        kept = separate(
            centers, sums, num_centers, colors, population, squared_separation,
            CAP, CAP, CHANNELS, BY_POPULATION, AT_LEAST_TWO,
        )  # fmt: skip
    tl.store(num_colors + image, kept)
    for start in range(kept, most_colors, BLOCK):
        k = start + tl.arange(0, BLOCK)
        tl.store(population + k, tl.zeros((BLOCK,), tl.int32), mask=k < most_colors)
    for start in range(CHANNELS * kept, CHANNELS * most_colors, BLOCK):
        k = start + tl.arange(0, BLOCK)
        tl.store(colors + k, tl.zeros((BLOCK,), tl.int16), mask=k < CHANNELS * most_colors)
    tl.debug_barrier()


@triton.jit
def next_image(images, taken):
    """The image a program takes up when it has finished one: the next in line, so that none idles."""
    image = images
    if tl.num_programs(0) < images:
        image = tl.num_programs(0) + tl.atomic_add(taken, 1, sem="relaxed")
    return image
