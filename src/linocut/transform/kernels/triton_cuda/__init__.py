"""The backend for NVIDIA GPUs, in Triton. Nothing here waits for the device, so a CUDA graph can hold it.

Scratch memory is taken from torch's allocator and does not grow with the batch. Tables of the blur's filters are made
when an image size is first seen; that one call waits, so show each size once before a graph is captured.
With TRITON_INTERPRET=1 set before Triton is first imported, CPU tensors are taken too, slowly: that is how the kernels
are tested without a GPU.
"""

from contextlib import nullcontext

import torch
import triton
from torch import Tensor

from linocut.transform.kernels import torch_ops
from linocut.transform.kernels.triton_cuda.blurring import blur_kernel, enter_kernel, spread_kernel
from linocut.transform.kernels.triton_cuda.filters import axis, fits, shifts
from linocut.transform.kernels.triton_cuda.launch import palette_plan, setting_for
from linocut.transform.kernels.triton_cuda.linf import paint_linf_kernel
from linocut.transform.kernels.triton_cuda.painting import paint_kernel, thumbnail_kernel
from linocut.transform.kernels.triton_cuda.softening import soft_kernel
from linocut.transform.settings import EIGHTHS_PER_LEVEL, BlurRule, PaletteRule

# How kernels are launched; benchmarks/gpu_transform.py tries others.
BLUR_WARPS = 2
LARGE_BLUR_WARPS = 4
PAINT_BLOCK = 512
PAINT_WARPS = 4
SOFT_BLOCK = 128


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
                blocks = triton.cdiv(x.numel(), 1024)
                enter_kernel[(blocks,)](x, eighths, x.numel(), BLOCK=1024, enable_fp_fusion=False)
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
    plan = palette_plan(rule, images, channels, height, width, y.device, setting_for(images, y.device))
    rows, columns = plan.rows, plan.columns
    colors = torch.empty((images, plan.most_colors, channels), dtype=torch.int16, device=y.device)
    population = torch.empty((images, plan.most_colors), dtype=torch.int32, device=y.device)
    num_colors = torch.empty((images,), dtype=torch.int32, device=y.device)
    if y.numel() == 0:
        return colors, population, num_colors
    with on_device(y):
        small = y
        if (rows, columns) != (height, width):
            small = torch.empty((images, channels, rows, columns), dtype=torch.int16, device=y.device)
            thumbnail_kernel[(images * channels * rows,)](
                y, small, height, width, rows, columns, CELLS=triton.next_power_of_2(columns), num_warps=1
            )
        plan.kernel[(plan.programs,)](
            small,
            colors,
            population,
            num_colors,
            torch.empty(plan.longs, dtype=torch.int64, device=y.device),
            torch.empty(plan.ints, dtype=torch.int32, device=y.device),
            # how many images were taken beyond the first round; nobody looks where one round is enough
            torch.zeros(1, dtype=torch.int32, device=y.device) if plan.programs < images else num_colors,
            images,
            rows * columns,
            plan.most_colors,
            rule.lloyd_steps,
            min(rule.separation**2, 2**31 - 1),
            **plan.constants,
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


def paint_linf(y: Tensor, colors: Tensor) -> Tensor:
    """Unit floats (B,C,H,W), every pixel its nearest code of one list (K,C) in L-infinity."""
    y = y.contiguous()
    images, channels, height, width = y.shape
    painted = torch.empty(y.shape, dtype=torch.float32, device=y.device)
    if y.numel() == 0:
        return painted
    block = min(PAINT_BLOCK, max(32, triton.next_power_of_2(height * width)))
    with on_device(y):
        paint_linf_kernel[(images * triton.cdiv(height * width, block),)](
            y,
            colors.contiguous(),
            painted,
            height * width,
            len(colors),
            CHANNELS=channels,
            BLOCK=block,
            num_warps=PAINT_WARPS,
        )
    return painted


def through_soft_codebook(grad: Tensor, y: Tensor, palette: Tensor, num_colors: Tensor, softness: float) -> Tensor:
    """The gradient at the eighths y, float32 (B,C,H,W), had each pixel become the weighted mean of its palette."""
    y, grad = y.contiguous(), grad.float().contiguous()
    images, channels, height, width = y.shape
    back = torch.empty_like(grad)
    if y.numel() == 0:
        return back
    shared = palette.stride(0) == 0 and palette[0].is_contiguous()  # one list of codes for all images
    palette = palette if shared else palette.contiguous()
    block = min(SOFT_BLOCK, max(32, triton.next_power_of_2(height * width)))
    with on_device(y):
        soft_kernel[(images * triton.cdiv(height * width, block),)](
            grad,
            y,
            palette,
            num_colors.contiguous(),
            back,
            height * width,
            palette.stride(0),
            softness / EIGHTHS_PER_LEVEL,
            CHANNELS=channels,
            BLOCK=block,
            num_warps=PAINT_WARPS,
        )
    return back


def on_device(x: Tensor):
    """A context in which kernels start on the tensor's own device; it costs nothing where that is current."""
    elsewhere = x.is_cuda and x.device.index != torch.cuda.current_device()
    return torch.cuda.device(x.device) if elsewhere else nullcontext()
