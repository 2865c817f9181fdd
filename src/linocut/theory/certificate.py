"""Which pixels of an image no perturbation of eps levels can move across the split, for both two-colour codebooks.

Perturbed values are real and clipped to 0..255; the image is whole levels. At a split m a level x is certainly low
iff x + eps <= m, certainly high iff x - eps > m, and undecided for the whole levels

    floor(m - eps) + 1  ..  floor(m + eps).

A fixed codebook has one m. The adaptive one splits at the midpoint of the perturbed minimum and maximum, which ranges
over an interval that follows from the image's own minimum and maximum; but one m holds for all pixels at once. So an
adversary chooses a *window* of at most ceil(2 eps) neighbouring levels, and then any colours for the pixels inside it.
Windows are numbered by their first level: a `Span` is all that an adversary of radius eps can choose from.
For an image that reaches 0 and 255 no window holds 0 or 255 while eps < 85.

Rounding: eps is counted in 1024ths of a level and rounded up, so a certificate is for eps or a little more;
everything else is integer arithmetic and exact.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor

from linocut.errors import InputError
from linocut.theory.definitions import WHITE

PARTS = 1024  # eps is a whole number of these parts of a level

Codebook = str | tuple[int, int]  # "adaptive", or the two colours of a fixed codebook


class Span(NamedTuple):
    """The windows an adversary can choose: first levels first_min..first_max; int64, one entry an image.

    The window that begins at f ends at min(f + width - 1, last_max).
    """

    first_min: Tensor
    first_max: Tensor
    last_max: Tensor
    width: int | Tensor

    def last(self, first: Tensor) -> Tensor:
        """The last level of the window that begins at `first`."""
        return torch.minimum(first + (self.width - 1), self.last_max)


class Certainty(NamedTuple):
    """Booleans of the image's shape: pixels that always go low, that always go high, and all others."""

    low: Tensor
    high: Tensor
    undecided: Tensor


def parts_of_a_level(eps: float | Fraction) -> int:
    """eps in 1024ths of a level, rounded up."""
    if not (math.isfinite(eps) and 0 <= eps <= WHITE):
        raise InputError(f"eps is a number of grey levels from 0 to 255, got {eps!r}: multiply by 255?")
    return math.ceil(Fraction(eps) * PARTS)


def span(lowest: Tensor, highest: Tensor, eps: float | Fraction, codebook: Codebook) -> Span:
    """What an adversary of radius eps can choose for images with these lowest and highest levels."""
    return span_in_parts(lowest, highest, parts_of_a_level(eps), codebook)


def span_in_parts(lowest: Tensor, highest: Tensor, parts: int | Tensor, codebook: Codebook) -> Span:
    """The same for a radius in 1024ths of a level, which may be a whole number on the images' device."""
    unit = 2 * PARTS  # a midpoint of two multiples of 1/PARTS
    radius = 2 * parts
    width = -(-2 * radius // unit)
    lowest, highest = lowest.long(), highest.long()
    if codebook == "adaptive":
        sink = (lowest * unit - radius).clamp_min(0) + (highest * unit - radius).clamp_min(0)
        rise = (lowest * unit + radius).clamp_max(WHITE * unit) + (highest * unit + radius).clamp_max(WHITE * unit)
        split_min, split_max = sink // 2, rise // 2  # radius and unit are even: both sums halve exactly
    elif isinstance(codebook, tuple) and len(codebook) == 2 and 0 <= codebook[0] < codebook[1] <= WHITE:
        split_min = split_max = torch.full_like(lowest, (codebook[0] + codebook[1]) * PARTS)
    else:
        raise InputError(f"codebook is 'adaptive' or two increasing levels such as (0, 255), got {codebook!r}")
    first_min = (split_min - radius).div(unit, rounding_mode="floor") + 1
    first_max = (split_max - radius).div(unit, rounding_mode="floor") + 1
    return Span(first_min, first_max, (split_max + radius).div(unit, rounding_mode="floor"), width)


def span_of(images: Tensor, eps: float | Fraction, codebook: Codebook) -> Span:
    """What an adversary of radius eps can choose for each image of a stack (N, ...) of whole levels."""
    flat = images.flatten(1)
    return span(flat.amin(1), flat.amax(1), eps, codebook)


def certify(image: Tensor, eps: float | Fraction, codebook: Codebook) -> Certainty:
    """The pixels that always go low, always go high, and that may go either way; nothing undecided is a proof.

    `image` holds whole levels 0..255, in any shape. For the adaptive codebook this is the union of all windows.
    """
    if image.dtype.is_floating_point or image.numel() == 0 or image.min() < 0 or image.max() > WHITE:
        raise InputError(f"an image of whole levels 0..255 is wanted, got {image.dtype} of shape {tuple(image.shape)}")
    levels = image.long()
    choice = span_of(levels[None], eps, codebook)
    low, high = levels < choice.first_min, levels > choice.last_max
    return Certainty(low, high, ~(low | high))


def binary_bounds(images: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Lowest and highest black-and-white images (booleans, True is white) when first..last are undecided.

    `images` is (N, 1, H, W) of whole levels; `first` and `last` are (N,).
    """
    return images > last.view(-1, 1, 1, 1), images >= first.view(-1, 1, 1, 1)
