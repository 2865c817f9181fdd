"""How the palette kernel is launched: what follows from a rule, a shape and a device, worked out once and kept."""

from functools import lru_cache
from typing import NamedTuple

import torch
import triton

from linocut.transform.settings import PaletteRule

LARGEST_BITMAP = 1024  # words of 32 bins; finer bins are ranked by counting
UNROLL = 4


class Setting(NamedTuple):
    """Warps and registers of one program, pixels in a group, programs for each multiprocessor."""

    warps: int
    group: int
    programs: int
    registers: int


# benchmarks/gpu_transform.py tries others.
FEW_IMAGES = Setting(warps=8, group=64, programs=2, registers=128)
MANY_IMAGES = Setting(warps=1, group=64, programs=16, registers=128)
MANY = 16  # images for each multiprocessor: from here on the number of instructions counts, below it their latency


class Plan(NamedTuple):
    """The kernel's sizes: programs, int64 and int32 words of scratch for all of them, thumbnail, compiled constants."""

    programs: int
    longs: int
    ints: int
    rows: int
    columns: int
    most_colors: int
    constants: dict


@lru_cache(maxsize=256)
def palette_plan(
    rule: PaletteRule,
    images: int,
    channels: int,
    height: int,
    width: int,
    device: torch.device,
    few: Setting,
    many: Setting,
) -> Plan:
    """How to find the palettes of images (images, channels, height, width)."""
    setting = many if images >= MANY * processors(device) else few
    rows, columns = min(height, rule.thumbnail_size), min(width, rule.thumbnail_size)
    most = rule.most_colors(channels, height, width)
    bins = -(-2041 // (8 * rule.bin_levels))
    words = triton.next_power_of_2(triton.cdiv(bins**channels, 32))
    words = words if words <= LARGEST_BITMAP else 0
    block = max(32, triton.next_power_of_2(rows * columns))
    cap = max(32, triton.next_power_of_2(most))
    warps = max(setting.warps, block // 1024)  # a warp must hold its share of every cluster of a fine thumbnail
    group = min(block, setting.group)
    notes = 2 * words if words else 3 * block
    programs = min(images, setting.programs * processors(device))
    constants = {
        "WIDTH": 8 * rule.bin_levels,
        "BINS": bins,
        "WORDS": words,
        "CHANNELS": channels,
        "PIXELS": block,
        "CAP": cap,
        "NOTES": notes,
        "GROUP": group,
        "GROUPS": block // group,
        "ROWS": warps,
        "BY_POPULATION": rule.by_population,
        "AT_LEAST_TWO": rule.at_least_two,
        "UNROLL": UNROLL,
        "num_warps": warps,
        "maxnreg": setting.registers,
    }
    longs = programs * (4 * cap + 2 * UNROLL)
    ints = programs * (8 * cap + 3 * block + 9 * (block // group) + notes)
    return Plan(programs, longs, ints, rows, columns, most, constants)


@lru_cache(maxsize=64)
def processors(device: torch.device) -> int:
    """How many multiprocessors the device has."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
