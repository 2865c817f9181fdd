"""The backend for NVIDIA GPUs, in Triton. Nothing here waits for the device, so a CUDA graph can hold it.

Scratch memory is taken from torch's allocator and does not grow with the batch (palette) or is one int16 copy of the
images (blur) and one float32 copy with margins (its transpose). With TRITON_INTERPRET=1 set before Triton is first
imported, CPU tensors are taken too, slowly: that is how the kernels are tested without a GPU.
"""

from contextlib import nullcontext
from functools import lru_cache
from typing import NamedTuple

import torch
import triton
from torch import Tensor

from linocut.transform.kernels import torch_ops
from linocut.transform.kernels.triton_cuda.blurring import blur_kernel, enter_kernel, spread_kernel
from linocut.transform.kernels.triton_cuda.filters import axis, fits, shifts
from linocut.transform.kernels.triton_cuda.painting import paint_kernel, thumbnail_kernel
from linocut.transform.kernels.triton_cuda.palette import find_palette_kernel
from linocut.transform.settings import BlurRule, PaletteRule


class PaletteLaunch(NamedTuple):
    """Warps and registers of a program that finds palettes, its group of pixels, programs for each multiprocessor."""

    warps: int
    group: int
    programs: int
    registers: int


LARGEST_BITMAP = 1024  # words of 32 bins; finer bins are ranked by counting
# How kernels are launched; benchmarks/gpu_transform.py tries others.
FEW_IMAGES = PaletteLaunch(warps=8, group=64, programs=2, registers=128)
MANY_IMAGES = PaletteLaunch(warps=1, group=64, programs=16, registers=128)
MANY = 4  # images for each multiprocessor: from here on the number of instructions counts, below it their latency
UNROLL = 4
BLUR_WARPS = 2
LARGE_BLUR_WARPS = 4
PAINT_BLOCK = 1024
PAINT_WARPS = 4


def blur(x: Tensor, rule: BlurRule) -> tuple[Tensor, Tensor]:
    """Eighths int16 and kernel choice uint8 of unit floats (B,C,H,W)."""
    if not fits(rule, *x.shape[2:]):
        return torch_ops.blur(x, rule)
    x = x.float().contiguous()
    eighths = torch.empty(x.shape, dtype=torch.int16, device=x.device)
    if x.numel() == 0 or rule.kernel_sizes == (1,):
        level = torch.zeros(x.shape, dtype=torch.uint8, device=x.device)
        if x.numel() > 0:
            with on_device(x):
                # Kernels that enter run without fused multiply-adds: `enter` multiplies, rounds, and rounds again.
                enter_kernel[(triton.cdiv(x.numel(), 1024),)](x, eighths, x.numel(), BLOCK=1024, enable_fp_fusion=False)
        return eighths, level
    level = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
    images, channels, height, width = x.shape
    rows, columns = axis(rule, height, x.device), axis(rule, width, x.device)
    with on_device(x):
        blur_kernel[(images * channels * rows.windows * columns.windows,)](
            x,
            rows.filters,
            columns.filters,
            eighths,
            level,
            height,
            width,
            rows.windows,
            columns.windows,
            LIMITS=rule.limits,
            SHIFTS=shifts(rule),
            ROWS=rows.size,
            COLUMNS=columns.size,
            DOWN=rows.margin,
            ACROSS=columns.margin,
            num_warps=BLUR_WARPS if rows.size * columns.size <= 1024 else LARGE_BLUR_WARPS,
            enable_fp_fusion=False,
        )
    return eighths, level


def blur_transpose(grad: Tensor, level: Tensor, rule: BlurRule) -> Tensor:
    """The gradient at the blur's input, its kernel choice frozen: float32 (B,C,H,W), the same bits every time."""
    if not fits(rule, *grad.shape[2:]):
        return torch_ops.blur_transpose(grad, level, rule)
    grad = grad.float().contiguous()
    if grad.numel() == 0 or rule.kernel_sizes[0] == 1:
        return grad.clone()
    spread = torch.empty_like(grad)
    images, channels, height, width = grad.shape
    rows, columns = axis(rule, height, grad.device), axis(rule, width, grad.device)
    with on_device(grad):
        spread_kernel[(images * channels * rows.windows * columns.windows,)](
            grad,
            level.contiguous(),
            rows.filters,
            columns.filters,
            spread,
            height,
            width,
            rows.windows,
            columns.windows,
            SHIFTS=shifts(rule),
            ROWS=rows.size,
            COLUMNS=columns.size,
            DOWN=rows.margin,
            ACROSS=columns.margin,
            num_warps=BLUR_WARPS if rows.size * columns.size <= 1024 else LARGE_BLUR_WARPS,
        )
    return spread


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
    setting = palette_launch(images, y.device)
    warps = max(setting.warps, block // 1024)
    group = min(block, setting.group)
    groups = block // group
    notes = 2 * words if words else 3 * block
    programs = min(images, setting.programs * processors(y.device))
    longs = 4 * cap + 2 * UNROLL
    ints = 8 * cap + 3 * block + 9 * groups + notes
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
            torch.empty(programs * longs, dtype=torch.int64, device=y.device),
            torch.empty(programs * ints, dtype=torch.int32, device=y.device),
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
            GROUP=group,
            GROUPS=groups,
            ROWS=warps,
            BY_POPULATION=rule.by_population,
            AT_LEAST_TWO=rule.at_least_two,
            UNROLL=UNROLL,
            num_warps=warps,
            maxnreg=setting.registers,
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


def on_device(x: Tensor):
    """A context in which kernels start on the tensor's own device; it costs nothing where that is current."""
    elsewhere = x.is_cuda and x.device.index != torch.cuda.current_device()
    return torch.cuda.device(x.device) if elsewhere else nullcontext()


def palette_launch(images: int, device: torch.device) -> PaletteLaunch:
    """How the palettes of this many images are found fastest."""
    return MANY_IMAGES if images >= MANY * processors(device) else FEW_IMAGES


@lru_cache(maxsize=64)
def processors(device: torch.device) -> int:
    """How many multiprocessors the device has."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
