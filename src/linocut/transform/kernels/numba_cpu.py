"""Backend `numba`: compiled loops, images and strips of images shared out over threads.

Plain threads, not Numba's own pools: those must not be used after a fork, and DataLoader workers fork.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from torch import Tensor

from linocut.transform.reference import gaussian_weights, leave
from linocut.transform.settings import EIGHTHS_PER_LEVEL, FULL_SCALE, BlurRule, PaletteRule

STRIP_PIXELS = 1 << 14  # a strip's buffers stay in a core's own cache
_compiled: set[str] = set()  # what this process has called before


def blur(x: Tensor, rule: BlurRule) -> tuple[Tensor, Tensor]:
    from linocut.transform.kernels.numba_blur import blur_strips

    B, C, H, W = x.shape
    y = x.new_empty(x.shape, dtype=torch.int16)
    level = x.new_empty(x.shape, dtype=torch.uint8)
    planes = (t.reshape(B * C, H, W).numpy() for t in (x.detach().contiguous(), y, level))
    x_P, y_P, level_P = planes
    rows = max(1, STRIP_PIXELS // max(W, 1))
    limits = np.array(rule.limits, dtype=np.int32)
    tables = kernel_tables(rule.kernel_sizes)
    share(
        "blur",
        B * C * -(-H // rows),
        lambda first, end: blur_strips(x_P, rows, first, end, *tables, limits, y_P, level_P),
    )
    return y, level


def blur_transpose(grad: Tensor, level: Tensor, rule: BlurRule) -> Tensor:
    from linocut.transform.kernels.numba_blur import transpose_planes

    B, C, H, W = grad.shape
    out = grad.new_empty(grad.shape, dtype=torch.float32)
    grad_P, level_P, out_P = (
        t.reshape(B * C, H, W).numpy() for t in (grad.detach().contiguous(), level.contiguous(), out)
    )
    tables = kernel_tables(rule.kernel_sizes)
    share(
        "blur_transpose",
        B * C,
        lambda first, end: transpose_planes(grad_P, level_P, first, end, *tables, out_P),
    )
    return out


def find_palette(y: Tensor, rule: PaletteRule) -> tuple[Tensor, Tensor, Tensor]:
    from linocut.transform.kernels.numba_palette import find_palettes

    B, C, H, W = y.shape
    K = rule.most_colors(C, H, W)
    if max(H, W) > rule.thumbnail_size:
        y = shrink(y, rule.thumbnail_size)
    palette = y.new_zeros((B, K, C), dtype=torch.int16)
    population = y.new_zeros((B, K), dtype=torch.int32)
    num_colors = y.new_zeros(B, dtype=torch.int32)
    y_B = y.contiguous().flatten(2).numpy()
    palette_B, population_B, num_B = (t.numpy() for t in (palette, population, num_colors))
    settings = (
        8 * rule.bin_levels,
        rule.lloyd_steps,
        rule.separation,
        rule.by_population,
        rule.at_least_two,
    )
    share(
        "find_palette",
        B,
        lambda first, end: find_palettes(y_B, first, end, *settings, palette_B, population_B, num_B),
    )
    return palette, population, num_colors


def shrink(y: Tensor, size: int) -> Tensor:
    """Thumbnails of the images, no axis longer than `size`."""
    from linocut.transform.kernels.numba_thumbnail import thumbnails

    B, C, H, W = y.shape
    small = y.new_empty((B, C, min(H, size), min(W, size)), dtype=torch.int16)
    y_B, small_B = y.contiguous().numpy(), small.numpy()
    share("thumbnails", B, lambda first, end: thumbnails(y_B, size, first, end, small_B))
    return small


def paint(y: Tensor, palette: Tensor, num_colors: Tensor) -> Tensor:
    from linocut.transform.kernels.numba_paint import paint_chunks

    B, C, H, W = y.shape
    out = y.new_empty(y.shape, dtype=torch.float32)
    y_B, out_B = y.contiguous().reshape(B, C, H * W).numpy(), out.reshape(B, C, H * W).numpy()
    palette_B, num_B = palette.contiguous().numpy(), num_colors.numpy()
    share(
        "paint",
        B * -(-H * W // STRIP_PIXELS),
        lambda first, end: paint_chunks(y_B, palette_B, num_B, STRIP_PIXELS, first, end, out_B),
    )
    return out


def paint_linf(y: Tensor, colors: Tensor) -> Tensor:
    from linocut.transform.kernels.numba_linf import paint_chunks

    B, C, H, W = y.shape
    out = y.new_empty(y.shape, dtype=torch.float32)
    y_B, out_B = y.contiguous().reshape(B, C, H * W).numpy(), out.reshape(B, C, H * W).numpy()
    codes = np.zeros((len(colors), 3), dtype=np.int16)
    codes[:, :C] = colors.numpy()
    unit = leave(codes[:, :C])
    share(
        "paint_linf",
        B * -(-H * W // STRIP_PIXELS),
        lambda first, end: paint_chunks(y_B, codes, unit, STRIP_PIXELS, first, end, out_B),
    )
    return out


def through_soft_codebook(grad: Tensor, y: Tensor, palette: Tensor, num_colors: Tensor, softness: float) -> Tensor:
    from linocut.transform.kernels.numba_soft import soft_chunks

    B, C, H, W = y.shape
    out = y.new_empty(y.shape, dtype=torch.float32)
    grad_B, y_B, out_B = (
        t.reshape(B, C, H * W).numpy() for t in (grad.detach().float().contiguous(), y.contiguous(), out)
    )
    palette_B, num_B = palette.contiguous().numpy(), num_colors.contiguous().numpy()
    rate = softness / EIGHTHS_PER_LEVEL
    weights = np.exp(-rate * np.arange(FULL_SCALE + 1)).astype(np.float32)
    share(
        "soft",
        B * -(-H * W // STRIP_PIXELS),
        lambda first, end: soft_chunks(
            grad_B, y_B, palette_B, num_B, weights, np.float32(rate), STRIP_PIXELS, first, end, out_B
        ),
    )
    return out


@cache
def kernel_tables(sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes, half kernels (centre first) and shifts as arrays."""
    halves = np.zeros((len(sizes), sizes[0] // 2 + 1), dtype=np.int32)
    shifts = np.zeros(len(sizes), dtype=np.int32)
    for k, size in enumerate(sizes):
        taps, shifts[k] = gaussian_weights(size)
        halves[k, : size // 2 + 1] = taps[size // 2 :]
    return np.array(sizes, dtype=np.int32), halves, shifts


def share(name: str, units: int, work: Callable[[int, int], None]) -> None:
    """Call work(first, end) over 0..units, cut into a dozen runs for each thread that torch may use."""
    if units == 0:
        return
    first = 0
    if name not in _compiled:
        with saying_why_it_waits():
            work(0, 1)
        _compiled.add(name)
        first = 1
    threads = min(torch.get_num_threads(), units - first)
    if threads <= 1:
        work(first, units)
        return
    step = -(-(units - first) // (12 * threads))
    pool = thread_pool(os.getpid(), torch.get_num_threads())
    handed_out: list[Future[None]] = []
    try:
        for f in range(first, units, step):
            try:
                handed_out.append(pool.submit(work, f, min(f + step, units)))
            except RuntimeError as reason:
                if "cannot schedule new futures" not in str(reason):
                    raise
                work(f, min(f + step, units))  # the program is ending but for this thread: no pool takes work any more
        for future in handed_out:
            future.result()
    finally:
        for future in handed_out:
            future.cancel()  # after an interruption nobody waits for the rest


@cache
def thread_pool(pid: int, threads: int) -> ThreadPoolExecutor:
    """Threads of this process: a forked child has another pid and so gets its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="linocut")


@contextmanager
def saying_why_it_waits() -> Iterator[None]:
    """Compiled code is kept on disk, so a first call rarely waits long; when it does, say so."""
    message = "linocut: compiling a CPU kernel for this machine, once; later runs start at once.\n"
    timer = threading.Timer(4.0, lambda: sys.stderr.write(message))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
