"""The six settings of the paper's experiments, and what becomes of them at another image size."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from linocut.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Preset:
    """What one experiment sets; everything else is the modules' default."""

    image_size: int
    eps: float
    kernel_sizes: tuple[int, ...]
    edge_thresholds: tuple[float, ...]
    at_least_two: bool = False


CIFAR = Preset(image_size=32, eps=8 / 255, kernel_sizes=(5, 3, 1), edge_thresholds=(20, 40))
PRESETS = {
    "mnist": Preset(image_size=28, eps=0.3, kernel_sizes=(3, 1, 1), edge_thresholds=(20, 40), at_least_two=True),
    "fashion-mnist": Preset(image_size=28, eps=0.1, kernel_sizes=(3, 1, 1), edge_thresholds=(20, 40)),
    "cifar-10": CIFAR,
    "gtsrb": CIFAR,
    "resisc45": Preset(image_size=256, eps=8 / 255, kernel_sizes=(13, 7, 3), edge_thresholds=(20, 40)),
    "imagenette": Preset(image_size=224, eps=4 / 255, kernel_sizes=(11, 5, 3), edge_thresholds=(10, 20)),
}

FIXED = {  # of the fixed codebook: how many codes, and how far apart at least, in levels
    "mnist": {"k": 2, "r": 153},
    "fashion-mnist": {"k": 2, "r": 153},
    "cifar-10": {"k": 300, "r": 16},
    "gtsrb": {"k": 500, "r": 16},
    "resisc45": {"k": 300, "r": 16},
    "imagenette": {"k": 500, "r": 16},
}
SOFTNESS = {"mnist": 10 / 255, "fashion-mnist": 10 / 255}  # of its surrogate, per level, where it is not 0.1


def preset_settings(name: str, image_size: int | Sequence[int] | None = None) -> dict:
    """Keyword arguments of EssentialFeatures for this preset, its kernels rescaled to the image size."""
    if not isinstance(name, str) or name not in PRESETS:
        raise InputError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")
    preset = PRESETS[name]
    side = _shorter_side(preset.image_size if image_size is None else image_size)
    return {
        "eps": preset.eps,
        "kernel_sizes": tuple(rescale_kernel(k, side, preset.image_size) for k in preset.kernel_sizes),
        "edge_thresholds": preset.edge_thresholds,
        "at_least_two": preset.at_least_two,
    }


def rescale_kernel(size: int, side: int, native_side: int) -> int:
    """The odd number nearest to the kernel's share of the shorter side; ties go down, and 1 is the least."""
    # The odd number below is 2h+1 with h = floor((share-1)/2); go one up only if that is strictly nearer.
    twice_h = size * side - native_side  # (share - 1) * native_side
    h = -(-(twice_h - native_side) // (2 * native_side))  # ceil((share - 1) / 2 - 1/2), in whole numbers
    return max(1, 2 * h + 1)


def _shorter_side(image_size: int | Sequence[int]) -> int:
    several = isinstance(image_size, Sequence) and not isinstance(image_size, str | bytes | bytearray)
    sides: list[Any] = list(image_size)[-2:] if several else [image_size]  # type: ignore[arg-type]
    if not sides or any(isinstance(n, bool) or not isinstance(n, Integral) or n < 1 for n in sides):
        raise InputError(f"image_size must be a number of pixels or (height, width), got {image_size!r}")
    return int(min(sides))
