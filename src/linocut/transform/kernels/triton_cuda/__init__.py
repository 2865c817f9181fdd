"""The backend for NVIDIA GPUs, in Triton. Nothing here waits for the device, so a CUDA graph can hold it.

Scratch memory is taken from torch's allocator and does not grow with the batch (palette) or is one int16 copy of the
images (blur) and one float32 copy with margins (its transpose). With TRITON_INTERPRET=1 set before Triton is first
imported, CPU tensors are taken too, slowly: that is how the kernels are tested without a GPU.
"""

from contextlib import nullcontext

import torch
import triton
from torch import Tensor

from linocut.transform.kernels.triton_cuda.blurring import (
    blur_kernel,
    enter_kernel,
    fold_kernel,
    spread_kernel,
)
from linocut.transform.kernels.triton_cuda.painting import paint_kernel, thumbnail_kernel
from linocut.transform.kernels.triton_cuda.palette import find_palette_kernel
from linocut.transform.reference import gaussian_weights
from linocut.transform.settings import BlurRule, PaletteRule

LARGEST_BITMAP = 1024  # words of 32 bins; finer bins are ranked by counting
# How kernels are launched; benchmarks/gpu_transform.py tries others.
PROGRAMS_PER_PROCESSOR = 4
PIXELS_PER_WARP = 256
REGISTERS = 128
UNROLL = 4
TILE = (16, 64)
BLUR_WARPS = 4
PAINT_BLOCK = 1024
PAINT_WARPS = 4


def blur(x: Tensor, rule: BlurRule) -> tuple[Tensor, Tensor]:
    """Eighths int16 and kernel choice uint8 of unit floats (B,C,H,W)."""
    x = x.float().contiguous()
    # Kernels that enter run without fused multiply-adds: `enter` multiplies, rounds to float32, and then rounds again.
    eighths = torch.empty(x.shape, dtype=torch.int16, device=x.device)
    level = torch.zeros(x.shape, dtype=torch.uint8, device=x.device)
    if x.numel() == 0:
        return eighths, level
    height, width = x.shape[2:]
    weights, shifts = padded_weights(rule)
    with on_device(x):
        if len(weights[0]) == 1:
            enter_kernel[(triton.cdiv(x.numel(), 1024),)](x, eighths, x.numel(), BLOCK=1024, enable_fp_fusion=False)
            return eighths, level
        rows, columns = tile(height, width)
        whole = height <= rows and width <= columns
        blurred = torch.empty_like(eighths)
        if not whole:
            enter_kernel[(triton.cdiv(x.numel(), 1024),)](x, eighths, x.numel(), BLOCK=1024, enable_fp_fusion=False)
        down, across = triton.cdiv(height, rows), triton.cdiv(width, columns)
        blur_kernel[(x.shape[0] * x.shape[1] * down * across,)](
            x,
            eighths,
            blurred,
            level,
            height,
            width,
            down,
            across,
            LIMITS=rule.limits,
            WEIGHTS=weights,
            SHIFTS=shifts,
            ENTER=whole,
            TINY=min(height, width) <= max(1, len(weights[0]) // 2),
            ROWS=rows,
            COLUMNS=columns,
            num_warps=BLUR_WARPS,
            enable_fp_fusion=False,
        )
    return blurred, level


def blur_transpose(grad: Tensor, level: Tensor, rule: BlurRule) -> Tensor:
    """The gradient at the blur's input, its kernel choice frozen: float32 (B,C,H,W), the same bits every time."""
    grad = grad.float().contiguous()
    level = level.contiguous()
    weights, shifts = padded_weights(rule)
    half = len(weights[0]) // 2
    if grad.numel() == 0 or half == 0:
        return grad.clone()
    height, width = grad.shape[2:]
    planes = grad.shape[0] * grad.shape[1]
    high, wide = height + 2 * half, width + 2 * half
    spread = torch.empty((planes, high, wide), dtype=torch.float32, device=grad.device)
    folded = torch.empty_like(grad)
    rows, columns = 16, 32
    with on_device(grad):
        down, across = triton.cdiv(high, rows), triton.cdiv(wide, columns)
        spread_kernel[(planes * down * across,)](
            grad, level, spread, height, width, down, across, WEIGHTS=weights, SHIFTS=shifts, ROWS=rows, COLUMNS=columns
        )
        down, across = triton.cdiv(height, rows), triton.cdiv(width, columns)
        fold_kernel[(planes * down * across,)](
            spread,
            folded,
            height,
            width,
            down,
            across,
            reflections(height, half),
            reflections(width, half),
            HALF=half,
            ROWS=rows,
            COLUMNS=columns,
        )
    return folded


def find_palette(y: Tensor, rule: PaletteRule) -> tuple[Tensor, Tensor, Tensor]:
    """Colours int16 (B,K,C), populations int32 (B,K) and num_colors int32 (B,) of images in eighths."""
    y = y.contiguous()
    images, channels, height, width = y.shape
    most = rule.most_colors(channels, height, width)
    colors = torch.empty((images, most, channels), dtype=torch.int16, device=y.device)
    population = torch.empty((images, most), dtype=torch.int32, device=y.device)
    num_colors = torch.empty((images,), dtype=torch.int32, device=y.device)
    if y.numel() == 0:
        return colors, population, num_colors
    rows, columns = min(height, rule.thumbnail_size), min(width, rule.thumbnail_size)
    bin_width = 8 * rule.bin_levels
    bins = -(-2041 // bin_width)
    words = triton.next_power_of_2(triton.cdiv(bins**channels, 32))
    words = words if words <= LARGEST_BITMAP else 0
    block = max(32, triton.next_power_of_2(rows * columns))
    cap = max(32, triton.next_power_of_2(most))
    notes = max(4 * block, 2 * words)
    programs = min(images, PROGRAMS_PER_PROCESSOR * processors(y.device))
    with on_device(y):
        small = y
        if (rows, columns) != (height, width):
            small = torch.empty((images, channels, rows, columns), dtype=torch.int16, device=y.device)
            thumbnail_kernel[(images * channels * rows,)](
                y, small, height, width, rows, columns, CELLS=triton.next_power_of_2(columns), num_warps=1
            )
        find_palette_kernel[(programs,)](
            small,
            colors,
            population,
            num_colors,
            torch.empty((programs, 4 * cap), dtype=torch.int32, device=y.device),
            torch.empty((programs, 2 * (cap + UNROLL)), dtype=torch.int64, device=y.device),
            torch.empty((programs, 2 * cap), dtype=torch.int64, device=y.device),
            torch.empty((programs, notes), dtype=torch.int32, device=y.device),
            images,
            rows * columns,
            most,
            rule.lloyd_steps,
            min(rule.separation**2, 2**31 - 1),
            WIDTH=bin_width,
            BINS=bins,
            WORDS=words,
            CHANNELS=channels,
            PIXELS=block,
            CAP=cap,
            NOTES=notes,
            BY_POPULATION=rule.by_population,
            AT_LEAST_TWO=rule.at_least_two,
            UNROLL=UNROLL,
            num_warps=max(1, block // PIXELS_PER_WARP),
            maxnreg=REGISTERS,
        )
    return colors, population, num_colors


def paint(y: Tensor, palette: Tensor, num_colors: Tensor) -> Tensor:
    """Unit floats (B,C,H,W), every pixel its nearest colour."""
    y = y.contiguous()
    images, channels, height, width = y.shape
    painted = torch.empty(y.shape, dtype=torch.float32, device=y.device)
    if y.numel() == 0:
        return painted
    block = min(PAINT_BLOCK, max(32, triton.next_power_of_2(height * width)))
    with on_device(y):
        paint_kernel[(images * triton.cdiv(height * width, block),)](
            y,
            palette.contiguous(),
            num_colors.contiguous(),
            painted,
            height * width,
            palette.shape[1],
            CHANNELS=channels,
            BLOCK=block,
            num_warps=PAINT_WARPS,
        )
    return painted


def padded_weights(rule: BlurRule) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Each kernel's weights, all as long as the first, and the s for which they sum to 2^s."""
    weights, shifts = [], []
    for size in rule.kernel_sizes:
        row, shift = gaussian_weights(size)
        margin = (0,) * ((rule.kernel_sizes[0] - size) // 2)
        weights.append((*margin, *row, *margin))
        shifts.append(shift)
    return tuple(weights), tuple(shifts)


def tile(height: int, width: int) -> tuple[int, int]:
    """Rows and columns that one program of the blur works on: a whole small channel, or part of a large one."""
    if height <= 32 and width <= 32:
        return max(4, triton.next_power_of_2(height)), max(8, triton.next_power_of_2(width))
    return TILE


def reflections(length: int, half: int) -> int:
    """How many places to look for mirror images of a pixel in a margin of `half`: see `reflection`."""
    return 4 * (1 + half // max(2 * (length - 1), 1)) + 2


def on_device(x: Tensor):
    """A context in which kernels start on the tensor's own device."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


def processors(device: torch.device) -> int:
    """How many multiprocessors the device has."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
