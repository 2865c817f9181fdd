"""The transform in operations that ONNX has: static shapes, masks, and two kinds of loop.

It equals reference.py bit for bit, like every backend, but is written to be exported, not to be run from
Python. Between entering and leaving all values are whole eighths of a level. Matrix products are float64:
their numbers are integers below 2^53, so no runtime can round them, whatever its order of summation.
"""

import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop

from linocut.transform import reference
from linocut.transform.settings import EIGHTHS_PER_LEVEL, FULL_SCALE, BlurRule, PaletteRule

INDEX_SPAN = 2**20  # squared distance and index share one number, 2^20 distance + index: its least is the nearest
MOST_CODES = 512  # of a fixed codebook: there 512 distance + index is below 2^24, so float32 holds it
NEVER = 2.0**60  # that number for a row that holds no colour
NARROW = (64, 256)  # widths at which clusters are searched where all of a batch fit


def enter(x: Tensor) -> Tensor:
    """Unit floats -> eighths int32: one float32 multiply, then round half to even. NaN becomes 0."""
    x = torch.where(x.isnan(), 0.0, x).clamp(0.0, 1.0)
    return (x * float(FULL_SCALE)).round().to(torch.int32)


def leave(eighths: Tensor) -> Tensor:
    """Eighths -> unit floats: one float32 division."""
    return eighths.to(torch.float32) / float(FULL_SCALE)


def blur(x: Tensor, rule: BlurRule) -> Tensor:
    """Blurred eighths int32 (B,C,H,W): every pixel from the kernel that its edge strength asks for."""
    y = _gaussian(x, rule.kernel_sizes[0])
    if rule.limits:
        strength = _edge_strength(x)
        for limit, size in zip(rule.limits, rule.kernel_sizes[1:], strict=True):
            y = torch.where(strength > limit, _gaussian(x, size), y)
    return y


def _mirrored(x: Tensor, pad: int, dim: int) -> Tensor:
    index = torch.from_numpy(reference.reflect(x.shape[dim], pad))
    return x.index_select(dim, index)


def _edge_strength(x: Tensor) -> Tensor:
    """gx² + gy² of the 3x3 Sobel filters; at most 8.3e7."""
    p = _mirrored(_mirrored(x, 1, 2), 1, 3)
    across, down = p[..., 2:] - p[..., :-2], p[:, :, 2:] - p[:, :, :-2]
    gx = across[:, :, :-2] + 2 * across[:, :, 1:-1] + across[:, :, 2:]
    gy = down[..., :-2] + 2 * down[..., 1:-1] + down[..., 2:]
    return gx * gx + gy * gy


def _gaussian(x: Tensor, size: int) -> Tensor:
    """x blurred by one kernel; both axes are summed before the one rounding, and int32 holds them."""
    if size == 1:
        return x
    weights, s = reference.gaussian_weights(size)
    for dim in (2, 3):
        length, wide = x.shape[dim], _mirrored(x, size // 2, dim)
        x = sum((w * wide.narrow(dim, i, length) for i, w in enumerate(weights)), start=torch.zeros_like(x))
    return torch.div(x + (1 << (2 * s - 1)), 1 << (2 * s), rounding_mode="trunc")


def find_palette(y: Tensor, rule: PaletteRule) -> tuple[Tensor, Tensor, Tensor]:
    """Colours int64 (B,K,C), populations int64 (B,K) and how many rows are used, int64 (B,)."""
    C, H, W = y.shape[1:]
    most = rule.most_colors(C, H, W)
    pixels = thumbnail(y, rule.thumbnail_size).flatten(2)
    centers, num_clusters = occupied_bins(pixels, rule.bin_levels, most)
    return separate(*lloyd(pixels, centers, num_clusters, rule.lloyd_steps), rule)


def thumbnail(y: Tensor, size: int) -> Tensor:
    """(B,C,h,w) int64, no side longer than `size`: exact area weights."""
    H, W = y.shape[2:]
    total, n = y.to(torch.float64), 1
    if size < H:
        total, n = torch.matmul(_overlaps(H, size), total), n * H
    if size < W:
        total, n = torch.matmul(total, _overlaps(W, size).T), n * W
    return torch.div(2 * total.to(torch.int64) + n, 2 * n, rounding_mode="trunc")


def _overlaps(length: int, cells: int) -> Tensor:
    return torch.from_numpy(reference.overlaps(length, cells)).to(torch.float64)


def occupied_bins(pixels: Tensor, bin_levels: int, most: int) -> tuple[Tensor, Tensor]:
    """Centres (B,K,C) of the cubes that hold a pixel of (B,C,N), first channel major, and how many (B,)."""
    side, C = EIGHTHS_PER_LEVEL * bin_levels, pixels.shape[1]
    cubes = torch.div(pixels, side, rounding_mode="trunc")
    code = cubes[:, 0]
    for c in range(1, C):
        code = 256 * code + cubes[:, c]  # no axis has more than 256 bins
    code = code.sort(dim=1).values
    first = torch.nn.functional.pad((code[:, 1:] != code[:, :-1]).to(torch.int64), (1, 0), value=1)
    place = first.cumsum(1) - 1
    found = torch.zeros_like(code[:, :1]).expand(-1, most).scatter(1, place, code)
    parts = []
    for _ in range(C):
        parts.append(torch.remainder(found, 256))
        found = torch.div(found, 256, rounding_mode="trunc")
    return side * torch.stack(parts[::-1], dim=2) + side // 2, first.sum(1)


def lloyd(pixels: Tensor, centers: Tensor, num_clusters: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Centres (B,K,C) after `steps` rounds of assign and average, and the last round's populations (B,K).

    There may be a cluster for each thumbnail pixel, but most images have far fewer. So there is a loop for
    each of a few widths, and the one that fits the batch runs; the others end before their first round.
    """
    K = centers.shape[1]
    members = torch.zeros_like(centers[:, :, 0])
    most, below = _largest(num_clusters), 0
    for width in (*(w for w in NARROW if w < K), K):
        due = (most > below) & (most <= width)
        moved, found = _lloyd_at(pixels, centers[:, :width].contiguous(), num_clusters, steps, due)
        centers = torch.cat([moved, centers[:, width:]], dim=1)
        members = torch.cat([members[:, :width] + found, members[:, width:]], dim=1)
        below = width
    return centers, members


def _lloyd_at(pixels: Tensor, centers: Tensor, num_clusters: Tensor, steps: int, due: Tensor) -> tuple[Tensor, Tensor]:
    """Lloyd's centres and populations if it is due; the centres as they are and zeros if not."""
    K, C = centers.shape[1:]
    points = torch.cat([pixels, torch.ones_like(pixels[:, :1])], dim=1)
    pixels_first = points.transpose(1, 2).to(torch.float64)
    index = torch.arange(K)
    offset = torch.where(index >= num_clusters[:, None], NEVER, index.to(torch.float64))

    def go_on(step: Tensor, moving: Tensor, centers: Tensor, members: Tensor) -> Tensor:
        return (step < max(steps, 1)) & moving

    def one_round(step: Tensor, moving: Tensor, centers: Tensor, members: Tensor) -> tuple[Tensor, ...]:
        c = centers.to(torch.float64)
        rows = torch.cat([-2 * INDEX_SPAN * c, (INDEX_SPAN * c.square().sum(2) + offset)[:, :, None]], dim=2)
        keys = torch.matmul(pixels_first, rows.transpose(1, 2))
        owner = torch.remainder(keys.amin(dim=2).to(torch.int64), INDEX_SPAN)
        total = torch.zeros_like(points[:, :, :1]).expand(-1, -1, K)
        total = total.scatter_add(2, owner[:, None].expand(-1, C + 1, -1), points).transpose(1, 2).contiguous()
        members = total[:, :, C].contiguous()
        if steps == 0:
            return step + 1, moving.clone(), centers.clone(), members
        n = members.clamp(min=1)[:, :, None]
        mean = torch.div(2 * total[:, :, :C] + n, 2 * n, rounding_mode="trunc")
        moved = torch.where(members[:, :, None] > 0, mean, centers)
        return step + 1, (moved != centers).any(), moved.contiguous(), members

    start = (torch.zeros((), dtype=torch.int64), due, centers, torch.zeros_like(centers[:, :, 0]))
    _, _, centers, members = while_loop(go_on, one_round, start)
    return centers, members


def separate(centers: Tensor, members: Tensor, rule: PaletteRule) -> tuple[Tensor, Tensor, Tensor]:
    """Colours at least `separation` apart, taken greedily, (B,K,C); their populations (B,K); how many (B,)."""
    K = centers.shape[1]
    index = torch.arange(K)
    candidate, pair, lonely = members > 0, None, None
    if rule.at_least_two and K > 1:
        candidate, pair, lonely = _with_partner(centers, candidate, rule.separation)
    if rule.by_population:
        # One number for population and index, so that no two are alike and no sort need be stable.
        order = K - 1 - torch.remainder((members * K + (K - 1 - index)).sort(dim=1, descending=True).values, K)
    else:
        order = index.expand_as(members)
    place = _places(_rows(centers, order), candidate.gather(1, order), rule.separation)
    kept = order.gather(1, torch.remainder((place * K + index).sort(dim=1).values, K))
    num_colors = (place < K).sum(1)
    if pair is not None and lonely is not None:
        kept = torch.where(lonely[:, None], torch.cat([pair, kept[:, 2:]], dim=1), kept)
        num_colors = torch.where(lonely, 2, num_colors)
    used = index < num_colors[:, None]
    return _rows(centers, kept) * used[:, :, None], members.gather(1, kept) * used, num_colors


def _largest(numbers: Tensor) -> Tensor:
    """The largest of (n,) numbers from 0 up; 0 of none, where onnxruntime's own maximum is no number to rely on."""
    return torch.nn.functional.pad(numbers, (1, 0)).max()


def _rows(table: Tensor, index: Tensor) -> Tensor:
    """(B,n,C): rows of a table (B,K,C) by index (B,n)."""
    return table.gather(1, index[:, :, None].expand(-1, -1, table.shape[2]))


def _places(centers: Tensor, candidate: Tensor, separation: int) -> Tensor:
    """(B,K): the place in the palette of each cluster that is kept, K where it is not."""
    K = centers.shape[1]
    index = torch.arange(K)

    def go_on(k: Tensor, candidate: Tensor, place: Tensor) -> Tensor:
        return (k < K) & candidate.any()  # K ends it where there is no image: onnxruntime finds any() of none true

    def keep_first(k: Tensor, candidate: Tensor, place: Tensor) -> tuple[Tensor, ...]:
        pick = candidate.to(torch.int32).argmax(1, keepdim=True)
        chosen = candidate & (index == pick)
        far = (centers - _rows(centers, pick)).square().sum(2) >= separation**2
        return k + 1, candidate & far & ~chosen, torch.where(chosen, k, place)

    start = (torch.zeros((), dtype=torch.int64), candidate, torch.full_like(centers[:, :, 0], K))
    return while_loop(go_on, keep_first, start)[2]


def _with_partner(centers: Tensor, filled: Tensor, separation: int) -> tuple[Tensor, Tensor, Tensor]:
    """Which clusters may be kept so that two are; the farthest pair; whether that pair is due."""
    K = centers.shape[1]
    distance = (centers[:, :, None] - centers[:, None]).square().sum(3)
    itself = torch.arange(K)[:, None] == torch.arange(K)
    distance = torch.where(itself | ~filled[:, :, None] | ~filled[:, None], -1, distance)
    candidate = (distance >= separation**2).any(2)
    farthest = distance.flatten(1).to(torch.int32).argmax(1)
    pair = torch.stack([torch.div(farthest, K, rounding_mode="trunc"), torch.remainder(farthest, K)], dim=1)
    several = filled.sum(1) > 1
    lonely = several & ~candidate.any(1)
    # onnxruntime chooses between numbers, not between truths
    return (several[:, None] & candidate) | (~several[:, None] & filled), pair, lonely


def assign(y: Tensor, colors: Tensor, num_colors: Tensor) -> Tensor:
    """(B,H,W) int64: the row of the nearest colour, ties to the earlier; one colour at a time, to need no memory."""
    most = _largest(num_colors)

    def go_on(k: Tensor, least: Tensor, label: Tensor) -> Tensor:
        return k < most

    def compare(k: Tensor, least: Tensor, label: Tensor) -> tuple[Tensor, ...]:
        color = colors.to(torch.int32).index_select(1, k[None]).squeeze(1)
        distance = (y - color[:, :, None, None]).square().sum(1, dtype=torch.int32)
        nearer = (distance < least) & (k < num_colors)[:, None, None]
        return k + 1, torch.where(nearer, distance, least), torch.where(nearer, k, label)

    least = torch.full_like(y[:, 0], 2**30)
    start = (torch.zeros((), dtype=torch.int64), least, torch.zeros_like(y[:, 0], dtype=torch.int64))
    return while_loop(go_on, compare, start)[2]


def assign_linf(y: Tensor, codes: Tensor) -> Tensor:
    """(B,H,W) int64: the row of codes (K,C) nearest in L-infinity, ties to the earlier; one code at a time too."""
    pixels, last = y.to(torch.float32), len(codes)

    def go_on(k: Tensor, least: Tensor) -> Tensor:
        return k < last

    def compare(k: Tensor, least: Tensor) -> tuple[Tensor, ...]:
        distance = (pixels - codes.index_select(0, k[None])[:, :, None, None]).abs().amax(1)
        return k + 1, torch.minimum(least, MOST_CODES * distance + k)

    start = (torch.zeros((), dtype=torch.int64), torch.full_like(pixels[:, 0], 2.0**24))
    return torch.remainder(while_loop(go_on, compare, start)[1].to(torch.int64), MOST_CODES)


def paint(colors: Tensor, label: Tensor) -> Tensor:
    """Unit floats (B,C,H,W): the colours (B,K,C) at the labels (B,H,W)."""
    C, (H, W) = colors.shape[2], label.shape[1:]
    flat = leave(colors).transpose(1, 2).gather(2, label.flatten(1)[:, None].expand(-1, C, -1))
    return flat.unflatten(2, (H, W))
