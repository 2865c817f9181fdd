"""What a transform is made of: two frozen records of integers, checked when they are made.

A researcher speaks in levels (0..255), thresholds and factors; everything below modules.py
speaks in integer eighths of a level (0..2040). These records are where the one becomes the other.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from linocut.errors import InputError

EIGHTHS_PER_LEVEL = 8
FULL_SCALE = 255 * EIGHTHS_PER_LEVEL  # 2040: white, in eighths of a level
LARGEST_SQUARED_GRADIENT = 2**31 - 1
LARGEST_SEPARATION = 2**12  # no two colours lie farther apart than 3533 eighths, and its square fits every integer
LARGEST_KERNEL = 4001  # above, the whole weights leave none for the centre, or less (docs/deviations.md)
MOST_KERNELS = 256  # a pixel's choice is kept in a byte


def is_finite(value: Any) -> bool:
    """Whether this is a finite number; True and False are none."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no float reaches
        return False


def is_whole(value: Any) -> bool:
    """Whether this is a whole number, of whatever type."""
    return is_finite(value) and int(value) == value


def as_list(name: str, values: Any) -> list[Any]:
    """The values of a setting that has several, in a list."""
    if not isinstance(values, Iterable) or getattr(values, "ndim", 1) != 1:
        raise InputError(f"{name} must be several numbers, such as (20, 40), got {values!r}")
    return list(values)


@dataclass(frozen=True, kw_only=True)
class BlurRule:
    """Which Gaussian a pixel gets. `limits[i]` is what gx²+gy² (eighths²) must exceed to move on to kernel i+1."""

    kernel_sizes: tuple[int, ...]
    limits: tuple[int, ...]

    @classmethod
    def of(cls, kernel_sizes: Sequence[int], edge_thresholds: Sequence[float]) -> "BlurRule":
        """The rule for thresholds on the paper's edge response (0..255).

        The response is the Sobel magnitude divided by sqrt(20), its largest value over 255, so
        response > t  iff  gx²+gy² > 1280·t² in eighths; the left side is an integer, so the floor decides.
        """
        sizes, thresholds = tuple(kernel_sizes), tuple(edge_thresholds)
        if not sizes or not all(is_whole(k) and 1 <= k <= LARGEST_KERNEL and k % 2 == 1 for k in sizes):
            raise InputError(f"kernel_sizes must be odd whole numbers from 1 to {LARGEST_KERNEL}, got {list(sizes)}")
        if len(sizes) > MOST_KERNELS:
            raise InputError(f"at most {MOST_KERNELS} kernel_sizes can be told apart, got {len(sizes)}")
        if any(a < b for a, b in itertools.pairwise(sizes)):
            raise InputError(f"kernel_sizes must not increase (weak edges get the most blur), got {list(sizes)}")
        if len(thresholds) != len(sizes) - 1:
            raise InputError(
                f"{len(sizes)} kernel_sizes need {len(sizes) - 1} edge_thresholds between them, got {len(thresholds)}"
            )
        if not all(is_finite(t) and t >= 0 for t in thresholds):
            raise InputError(f"edge_thresholds must be finite and not negative, got {list(thresholds)}")
        if any(a >= b for a, b in itertools.pairwise(thresholds)):
            raise InputError(f"edge_thresholds must increase strictly, got {list(thresholds)}")
        limits = (math.floor(min(1280 * float(t) * float(t), LARGEST_SQUARED_GRADIENT)) for t in thresholds)
        return cls(kernel_sizes=tuple(int(k) for k in sizes), limits=tuple(limits))


NO_BLUR = BlurRule(kernel_sizes=(1,), limits=())


@dataclass(frozen=True, kw_only=True)
class PaletteRule:
    """How an image's palette is found. `separation` is the smallest allowed distance of two colours, in eighths."""

    separation: int
    bin_levels: int = 16
    thumbnail_size: int = 32
    lloyd_steps: int = 20
    by_population: bool = True
    at_least_two: bool = False

    @classmethod
    def of(
        cls,
        *,
        eps: float,
        separation: float,
        bin_levels: int,
        thumbnail_size: int,
        lloyd_steps: int,
        order: str,
        at_least_two: bool,
    ) -> "PaletteRule":
        """The rule whose colours lie `separation` times eps apart (Paper: d = 3 eps)."""
        for name, value, least, most in (
            ("bin_levels", bin_levels, 1, 256),
            ("thumbnail_size", thumbnail_size, 1, 64),
            ("lloyd_steps", lloyd_steps, 0, 1000),
        ):
            if not is_whole(value) or not least <= value <= most:
                raise InputError(f"{name} must be a whole number from {least} to {most}, got {value!r}")
        for name, number in (("eps", eps), ("separation", separation)):
            if not is_finite(number) or number < 0:
                raise InputError(f"{name} must be finite and not negative, got {number!r}")
        if eps > 1:
            raise InputError(f"eps is on the unit range and at most 1, got {eps!r}: divide by 255?")
        if order not in ("population", "bins"):
            raise InputError(f"order must be 'population' or 'bins', got {order!r}")
        if at_least_two not in (True, False):
            raise InputError(f"at_least_two must be True or False, got {at_least_two!r}")
        return cls(
            separation=round(min(8 * float(separation) * 255 * float(eps), LARGEST_SEPARATION)),
            bin_levels=int(bin_levels),
            thumbnail_size=int(thumbnail_size),
            lloyd_steps=int(lloyd_steps),
            by_population=order == "population",
            at_least_two=bool(at_least_two),
        )

    def most_colors(self, channels: int, height: int, width: int) -> int:
        """The most clusters an image of this shape can have: one for each thumbnail pixel, or each bin."""
        bins_per_channel = math.ceil((FULL_SCALE + 1) / (EIGHTHS_PER_LEVEL * self.bin_levels))
        pixels = min(height, self.thumbnail_size) * min(width, self.thumbnail_size)
        return min(pixels, bins_per_channel**channels)
