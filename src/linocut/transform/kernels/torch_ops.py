"""Backend `torch`: whole batches in plain tensor operations, on the CPU or on CUDA.

Work is cut into strips (rows of a few channels, pixels of a few images) so that a large image needs little
memory beyond its result. On CUDA nothing waits for the device: loops run to their static end. On the CPU
the same loops stop as soon as nothing is left to do.
"""

from collections.abc import Iterator

import torch

from linocut.transform import reference
from linocut.transform.kernels.torch_nearest import ColorTable, strip_elements, strips
from linocut.transform.kernels.torch_palette import find_palette
from linocut.transform.kernels.torch_soft import through_soft_codebook
from linocut.transform.settings import FULL_SCALE, BlurRule

__all__ = ["blur", "blur_along", "blur_transpose", "find_palette", "paint", "paint_linf", "through_soft_codebook"]


def blur(x: torch.Tensor, rule: BlurRule) -> tuple[torch.Tensor, torch.Tensor]:
    """Eighths int16 and kernel choice uint8, both (B,C,H,W)."""
    planes = x.reshape(-1, *x.shape[2:])
    y = torch.empty(planes.shape, dtype=torch.int16, device=x.device)
    level = torch.zeros(planes.shape, dtype=torch.uint8, device=x.device)
    H, W = planes.shape[1:]
    reach = max(rule.kernel_sizes[0] // 2, 1 if rule.limits else 0)
    rows, columns = _reflect(H, reach, x.device), _reflect(W, reach, x.device)
    for p, r in _strips(planes, reach):
        around = rows[r.start : r.stop + 2 * reach]
        part = _enter(planes[p].index_select(1, around)).index_select(2, columns)
        _blur_strip(part, reach, rule, y[p, r], level[p, r])
    return y.view(x.shape), level.view(x.shape)


def _blur_strip(part: torch.Tensor, reach: int, rule: BlurRule, y: torch.Tensor, level: torch.Tensor) -> None:
    """Fill y and level for one strip, given its pixels with `reach` more on every side."""
    if rule.limits:
        strength = _edge_strength(_trim(part, reach - 1))
        for limit in rule.limits:
            level += strength > limit
    y.copy_(_gaussian(_trim(part, reach - rule.kernel_sizes[0] // 2), rule.kernel_sizes[0]))
    for i, size in enumerate(rule.kernel_sizes[1:], start=1):
        blurred = _gaussian(_trim(part, reach - size // 2), size).to(torch.int16)
        torch.where(level == i, blurred, y, out=y)


def blur_transpose(grad: torch.Tensor, level: torch.Tensor, rule: BlurRule) -> torch.Tensor:
    """The gradient at the blur's input, (B,C,H,W) of its dtype; no atomics, so it is repeatable."""
    planes, levels = grad.reshape(-1, *grad.shape[2:]), level.reshape(-1, *grad.shape[2:])
    back = torch.zeros(planes.shape, dtype=grad.dtype, device=grad.device)
    for p in _slices(len(planes), planes[:1].numel(), grad.device):
        for i, size in enumerate(rule.kernel_sizes):
            share = planes[p] * (levels[p] == i)
            if size > 1:
                weights, s = reference.gaussian_weights(size)
                for dim in (2, 1):
                    share = _scatter(share, [w / 2**s for w in weights], dim)
            back[p] += share
    return back.view(grad.shape)


def blur_along(direction: torch.Tensor, level: torch.Tensor, rule: BlurRule) -> torch.Tensor:
    """How the blur's output moves with its input, the kernel choice frozen: what blur_transpose is the transpose of."""
    planes, levels = direction.reshape(-1, *direction.shape[2:]), level.reshape(-1, *direction.shape[2:])
    moved = torch.zeros(planes.shape, dtype=direction.dtype, device=direction.device)
    for p in _slices(len(planes), planes[:1].numel(), direction.device):
        for i, size in enumerate(rule.kernel_sizes):
            part = planes[p]
            if size > 1:
                weights, s = reference.gaussian_weights(size)
                for dim in (1, 2):
                    length = part.shape[dim]
                    wide = part.index_select(dim, _reflect(length, size // 2, part.device))
                    part = sum(wide.narrow(dim, j, length) * (w / 2**s) for j, w in enumerate(weights))
            moved[p] += part * (levels[p] == i)
    return moved.view(direction.shape)


def paint(y: torch.Tensor, palette: torch.Tensor, num_colors: torch.Tensor) -> torch.Tensor:
    """Unit floats (B,C,H,W): every pixel its nearest colour, ties to the earlier one."""
    pixels = y.flatten(2)
    out = torch.empty(pixels.shape, dtype=torch.float32, device=y.device)
    unit = leave(palette).transpose(1, 2)
    for b, n, owner in ColorTable(palette, num_colors).nearest(pixels):
        torch.gather(unit[b], 2, owner[:, None].expand(-1, out.shape[1], -1), out=out[b, :, n])
    return out.view(y.shape)


def paint_linf(y: torch.Tensor, colors: torch.Tensor) -> torch.Tensor:
    """Unit floats (B,C,H,W): every pixel its nearest code in L-infinity, ties to the earlier one."""
    pixels, K = y.flatten(2), len(colors)
    out = torch.empty(pixels.shape, dtype=torch.float32, device=y.device)
    codes, unit = colors.to(torch.int32), leave(colors)
    index = torch.arange(K, dtype=torch.int32, device=y.device)[:, None]
    for b, n in strips(len(y), pixels.shape[2], K, y.device):
        part = pixels[b, :, n].to(torch.int32)
        distance = torch.stack([part[:, c, None] - codes[:, c, None] for c in range(y.shape[1])]).abs_().amax(0)
        owner = distance.mul_(K).add_(index).amin(1).remainder_(K)  # distance and index in one number
        out[b, :, n] = unit[owner.to(torch.int64)].transpose(1, 2)
    return out.view(y.shape)


def leave(eighths: torch.Tensor) -> torch.Tensor:
    """Eighths -> unit floats, divided by a tensor: CUDA multiplies by the reciprocal of a plain number."""
    eighths = eighths.to(torch.float32)
    return eighths / torch.full((), FULL_SCALE, dtype=torch.float32, device=eighths.device)


def _enter(x: torch.Tensor) -> torch.Tensor:
    """Unit floats -> eighths int32: one float32 multiply, then round half to even. NaN becomes 0."""
    return x.nan_to_num(0.0, 1.0, 0.0).clamp_(0, 1).mul_(FULL_SCALE).round_().to(torch.int32)


def _reflect(length: int, pad: int, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(reference.reflect(length, pad)).to(device, non_blocking=True)


def _trim(part: torch.Tensor, margin: int) -> torch.Tensor:
    return part[:, margin : part.shape[1] - margin, margin : part.shape[2] - margin]


def _edge_strength(p: torch.Tensor) -> torch.Tensor:
    """gx² + gy² of the 3x3 Sobel filters, for pixels given with one more on every side."""
    across, down = p[:, :, 2:] - p[:, :, :-2], p[:, 2:] - p[:, :-2]
    gx = across[:, :-2] + 2 * across[:, 1:-1] + across[:, 2:]
    gy = down[:, :, :-2] + 2 * down[:, :, 1:-1] + down[:, :, 2:]
    return gx.square_().add_(gy.square_())


def _gaussian(part: torch.Tensor, size: int) -> torch.Tensor:
    """The strip blurred by one kernel, for pixels given with size // 2 more on every side."""
    if size == 1:
        return part
    weights, s = reference.gaussian_weights(size)
    for dim in (1, 2):
        length = part.shape[dim] - size + 1
        total = part.narrow(dim, 0, length) * weights[0]
        for i in range(1, size):
            total.add_(part.narrow(dim, i, length), alpha=weights[i])
        part = total
    return part.add_(1 << (2 * s - 1)).bitwise_right_shift_(2 * s)


def _scatter(values: torch.Tensor, weights: list[float], dim: int) -> torch.Tensor:
    """Every value handed back to the positions it was gathered from, along one dimension."""
    length, half = values.shape[dim], len(weights) // 2
    shape = list(values.shape)
    shape[dim] += 2 * half
    wide = torch.zeros(shape, dtype=values.dtype, device=values.device)
    for i, weight in enumerate(weights):
        wide.narrow(dim, i, length).add_(values, alpha=weight)
    back = wide.narrow(dim, half, length)
    source = reference.reflect(length, half).tolist()
    for outside in (*range(half), *range(half + length, length + 2 * half)):
        back.narrow(dim, source[outside], 1).add_(wide.narrow(dim, outside, 1))
    return back


def _slices(length: int, size: int, device: torch.device) -> Iterator[slice]:
    """Consecutive slices of at most as many items of this size as one strip may hold."""
    step = max(1, strip_elements(device) // max(size, 1))
    return (slice(i, min(i + step, length)) for i in range(0, length, step))


def _strips(planes: torch.Tensor, reach: int) -> Iterator[tuple[slice, slice]]:
    """Slices of planes and of rows: many small planes whole, or a large one a few rows at a time."""
    P, H, W = planes.shape
    for p in _slices(P, (H + 2 * reach) * (W + 2 * reach), planes.device):
        for r in _slices(H, (p.stop - p.start) * (W + 2 * reach), planes.device):
            yield p, r
