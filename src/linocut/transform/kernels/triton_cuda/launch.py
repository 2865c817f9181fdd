"""Which palette kernel is launched and how: worked out once from a rule, a shape and a device, and kept."""

from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton

from linocut.transform.kernels.triton_cuda.few import find_palettes_of_few
from linocut.transform.kernels.triton_cuda.many import find_palettes_of_many
from linocut.transform.settings import PaletteRule

LARGEST_BITMAP = 1024  # words of 32 bins; finer bins are ranked by counting
UNROLL = 4
REGISTER_FILE = 65536  # of one multiprocessor


class Few(NamedTuple):
    """Pixels a warp holds, programs for each multiprocessor, registers of a thread: the kernel of `few.py`."""

    pixels: int
    programs: int
    registers: int


class Many(NamedTuple):
    """Warps, pixels in a group, programs for each multiprocessor, registers of a thread: the kernel of `many.py`."""

    warps: int
    group: int
    programs: int
    registers: int


# benchmarks/gpu_transform.py tries others.
FEW_IMAGES = Few(pixels=128, programs=2, registers=128)
MANY_IMAGES = Many(warps=1, group=128, programs=16, registers=128)
MANY = 16  # images for each multiprocessor: from here on the number of instructions counts, below it their latency


class Plan(NamedTuple):
    """The kernel and its sizes: programs, int64 and int32 words of scratch, thumbnail, compiled constants."""

    kernel: Any
    programs: int
    longs: int
    ints: int
    rows: int
    columns: int
    most_colors: int
    constants: dict


def setting_for(images: int, device: torch.device) -> Few | Many:
    """The setting for a batch of this size."""
    return MANY_IMAGES if images >= MANY * processors(device) else FEW_IMAGES


@lru_cache(maxsize=256)
def palette_plan(
    rule: PaletteRule,
    images: int,
    channels: int,
    height: int,
    width: int,
    device: torch.device,
    setting: Few | Many,
) -> Plan:
    """How to find the palettes of images (images, channels, height, width).

    BLOCK centres are looked at together, and no thread is without one: Triton would give it a copy of another's, and
    copies in several warps do not see the same while one of them writes.
    """
    rows, columns = min(height, rule.thumbnail_size), min(width, rule.thumbnail_size)
    most = rule.most_colors(channels, height, width)
    bins = -(-2041 // (8 * rule.bin_levels))
    words = triton.next_power_of_2(triton.cdiv(bins**channels, 32))
    words = words if words <= LARGEST_BITMAP else 0
    block = max(32, triton.next_power_of_2(rows * columns))
    cap = max(32, triton.next_power_of_2(most))
    programs = min(images, setting.programs * processors(device))
    constants = {
        "WIDTH": 8 * rule.bin_levels,
        "BINS": bins,
        "WORDS": words,
        "CHANNELS": channels,
        "PIXELS": block,
        "CAP": cap,
        "BY_POPULATION": rule.by_population,
        "AT_LEAST_TWO": rule.at_least_two,
        "UNROLL": UNROLL,
        "maxnreg": setting.registers,
    }
    if isinstance(setting, Few):
        notes = max(4 * block, 2 * words)
        warps = min(max(1, block // setting.pixels), REGISTER_FILE // (32 * setting.registers))
        warps = 1 << (warps.bit_length() - 1)
        constants |= {"NOTES": notes, "BLOCK": max(min(256, cap), 32 * warps), "num_warps": warps}
        longs, ints = 4 * cap + 2 * UNROLL, 4 * cap + notes
        kernel = find_palettes_of_few
    else:
        notes = 2 * words if words else 3 * block
        group = min(block, setting.group)
        warps = max(setting.warps, block // 1024)  # a warp must hold its share of every cluster of a fine thumbnail
        constants |= {"NOTES": notes, "BLOCK": max(min(128, cap), 32 * warps), "num_warps": warps}
        constants |= {"GROUP": group, "GROUPS": block // group, "ROWS": warps}
        longs, ints = 4 * cap + 2 * UNROLL, 8 * cap + 3 * block + 9 * (block // group) + notes
        kernel = find_palettes_of_many
    return Plan(kernel, programs, programs * longs, programs * ints, rows, columns, most, constants)


@lru_cache(maxsize=64)
def processors(device: torch.device) -> int:
    """How many multiprocessors the device has."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
