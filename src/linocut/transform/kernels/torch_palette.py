"""The palettes of a whole batch in tensor operations: thumbnail, bins, Lloyd, separation."""

import torch

from linocut.transform import reference
from linocut.transform.kernels.torch_nearest import ColorTable, strip_elements
from linocut.transform.settings import EIGHTHS_PER_LEVEL, PaletteRule


def find_palette(y: torch.Tensor, rule: PaletteRule) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Colours int16 (B,K,C), populations int32 (B,K) and how many rows are used, int32 (B,)."""
    B, C, H, W = y.shape
    K = rule.most_colors(C, H, W)
    colors = torch.zeros((B, K, C), dtype=torch.int16, device=y.device)
    population = torch.zeros((B, K), dtype=torch.int32, device=y.device)
    num_colors = torch.zeros(B, dtype=torch.int32, device=y.device)
    if B == 0:
        return colors, population, num_colors
    pixels = thumbnail(y, rule.thumbnail_size).flatten(2)
    centers, num_clusters = occupied_bins(pixels, rule.bin_levels, K)
    if y.device.type == "cpu":
        centers = centers[:, : int(num_clusters.max())]
    centers, members = lloyd(pixels, centers, num_clusters, rule.lloyd_steps)
    separate(centers, members, rule, colors, population, num_colors)
    return colors, population, num_colors


def thumbnail(y: torch.Tensor, size: int) -> torch.Tensor:
    """(B,C,h,w) int64, no side longer than `size`: exact area weights, summed as whole numbers in float64."""
    H, W = y.shape[2:]
    total, n = y, 1
    if size < H:
        weights = _overlaps(H, size, y.device)
        step = max(1, strip_elements(y.device) // y[:, :, 0].numel())
        total = torch.zeros((), dtype=torch.float64, device=y.device)
        for i in range(0, H, step):
            total = total + weights[:, i : i + step] @ y[:, :, i : i + step].to(torch.float64)
        n *= H
    if size < W:
        total = total.to(torch.float64) @ _overlaps(W, size, y.device).T
        n *= W
    return (2 * total.to(torch.int64) + n) // (2 * n)


def _overlaps(length: int, cells: int, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(reference.overlaps(length, cells)).to(device, torch.float64, non_blocking=True)


def occupied_bins(pixels: torch.Tensor, bin_levels: int, K: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Centres (B,K,C) of the cubes that hold a pixel of (B,C,N), first channel major, and how many (B,)."""
    side = EIGHTHS_PER_LEVEL * bin_levels
    B, C, N = pixels.shape
    code = torch.zeros((B, N), dtype=torch.int64, device=pixels.device)
    for channel in (pixels // side).unbind(1):
        code = 256 * code + channel  # no axis has more than 256 bins
    code = code.sort(dim=1).values
    first = torch.ones_like(code, dtype=torch.bool)
    first[:, 1:] = code[:, 1:] != code[:, :-1]
    place = first.cumsum(1) - 1
    found = torch.zeros((B, K), dtype=torch.int64, device=pixels.device).scatter_(1, place, code)
    cubes = torch.stack([(found >> (8 * (C - 1 - c))) & 255 for c in range(C)], dim=2)
    return side * cubes + side // 2, first.sum(1)


def lloyd(
    pixels: torch.Tensor, centers: torch.Tensor, num_clusters: torch.Tensor, steps: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Centres (B,K,C) after `steps` rounds of assign and average, and the last round's populations (B,K).

    An image at rest stays at rest, so the CPU goes on with the others alone.
    """
    on_cpu = pixels.device.type == "cpu"
    centers = centers.clone()
    population = torch.zeros(centers.shape[:2], dtype=torch.int64, device=pixels.device)
    moving = num_clusters.argsort() if on_cpu else None  # neighbours of like width share a strip
    for _ in range(max(steps, 1)):
        at = slice(None) if moving is None else moving
        old = centers[at]
        members, total = _gather_members(pixels[at], old, num_clusters[at])
        population[at] = members
        if steps == 0:
            break
        n = members.clamp(min=1)[:, :, None]
        new = torch.where(members[:, :, None] > 0, (2 * total + n) // (2 * n), old)
        centers[at] = new
        if moving is not None:
            moving = moving[(new != old).flatten(1).any(1)]
            if len(moving) == 0:
                break
    return centers, population


def _gather_members(
    pixels: torch.Tensor, centers: torch.Tensor, num_clusters: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """How many pixels (B,C,N) are nearest to each centre (B,K,C), and their sums (B,K,C)."""
    B, K, C = centers.shape
    members = torch.zeros((B, K), dtype=torch.int64, device=pixels.device)
    total = torch.zeros((B, C, K), dtype=torch.int64, device=pixels.device)
    for b, n, owner in ColorTable(centers, num_clusters).nearest(pixels):
        members[b].scatter_add_(1, owner, torch.ones_like(owner))
        total[b].scatter_add_(2, owner[:, None].expand(-1, C, -1), pixels[b, :, n])
    return members, total.transpose(1, 2)


def separate(
    centers: torch.Tensor,
    members: torch.Tensor,
    rule: PaletteRule,
    colors: torch.Tensor,
    population: torch.Tensor,
    num_colors: torch.Tensor,
) -> None:
    """Fill the palette with colours at least `separation` apart, taken greedily (Paper: d = 3 eps)."""
    centers, members = centers.to(torch.int32), members.to(torch.int32)
    candidate = members > 0
    pair = None
    if rule.at_least_two and centers.shape[1] > 1:
        candidate, pair, lonely = _with_partner(centers, candidate, rule.separation)
    if rule.by_population:
        order = members.sort(dim=1, descending=True, stable=True).indices
        candidate = candidate.gather(1, order)
        sorted_centers, sorted_members = _rows(centers, order), members.gather(1, order)
    else:
        sorted_centers, sorted_members = centers, members
    _keep_greedily(sorted_centers, sorted_members, candidate, rule.separation, colors, population, num_colors)
    if pair is not None:
        colors[:, :2] = torch.where(lonely[:, None, None], _rows(centers, pair).to(colors.dtype), colors[:, :2])
        population[:, :2] = torch.where(lonely[:, None], members.gather(1, pair), population[:, :2])
        num_colors.masked_fill_(lonely, 2)


def _rows(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """(B,n,C): rows of a table (B,K,C) by index (B,n)."""
    return table.gather(1, index[:, :, None].expand(-1, -1, table.shape[2]))


def _keep_greedily(
    centers: torch.Tensor,
    members: torch.Tensor,
    candidate: torch.Tensor,
    separation: int,
    colors: torch.Tensor,
    population: torch.Tensor,
    num_colors: torch.Tensor,
) -> None:
    """Keep each image's first candidate, drop those too near to it, and again until none is left."""
    on_cpu = centers.device.type == "cpu"
    for k in range(centers.shape[1]):
        left = candidate.any(1)
        if on_cpu and not left.any():
            break
        pick = candidate.to(torch.uint8).argmax(1, keepdim=True)
        color = _rows(centers, pick)
        colors[:, k] = (color[:, 0] * left[:, None]).to(colors.dtype)
        population[:, k] = members.gather(1, pick)[:, 0] * left
        num_colors += left
        far = (centers - color).square_().sum(2, dtype=torch.int32) >= separation**2
        candidate = (candidate & far).scatter_(1, pick, False)


def _with_partner(
    centers: torch.Tensor, filled: torch.Tensor, separation: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Which clusters may be kept so that two are (Paper: the footnote on MNIST).

    Candidates (B,K): those with another at `separation` or more; all, where there is only one cluster.
    Pair (B,2): the two farthest apart, lowest indices. Lonely (B,): no candidates, so the pair is due.
    """
    B, K, _ = centers.shape
    candidate, pair = torch.empty_like(filled), torch.empty((B, 2), dtype=torch.int64, device=centers.device)
    itself = torch.eye(K, dtype=torch.bool, device=centers.device)
    step = max(1, strip_elements(centers.device) // (K * K))
    for i in range(0, B, step):
        b = slice(i, i + step)
        distance = (centers[b, :, None] - centers[b, None]).square_().sum(3, dtype=torch.int32)
        distance.masked_fill_(itself | ~filled[b, :, None] | ~filled[b, None], -1)
        candidate[b] = (distance >= separation**2).any(2)
        farthest = distance.flatten(1).argmax(1)
        pair[b] = torch.stack([farthest // K, farthest % K], dim=1)
    several = filled.sum(1) > 1
    lonely = several & ~candidate.any(1)
    return torch.where(several[:, None], candidate, filled), pair, lonely
