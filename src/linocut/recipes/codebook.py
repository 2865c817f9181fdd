"""A fixed codebook of a data set with the paper's settings, and what there is to tell of any."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linocut.data import load
from linocut.transform.fixed import separations
from linocut.transform.modules import FixedCodebook
from linocut.transform.presets import FIXED

STAND_INS = {"digits": "mnist"}
USUAL = "cifar-10"  # whose settings a set has that the paper does not


def fit_on(
    name: str, root: Path | None, image_size: int | None, *, k: int | None, r: float | None, **how: Any
) -> FixedCodebook:
    """The codebook of this set's training images; k and r are the paper's for it where they are None.

    how: builder, sample and seed of FixedCodebook.fit.
    """
    usual = FIXED.get(STAND_INS.get(name, name), FIXED[USUAL])
    images = load(name, root, "train", image_size)
    return FixedCodebook.fit(images, usual["k"] if k is None else k, usual["r"] if r is None else r, **how)


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a codebook holds. separations: of each code to its nearest other, in levels; infinite for a single one.

    shares: the per cent of the pixels that each code paints, None where nobody counted them.
    """

    title: str
    colors: list[list[int]]
    origin: dict[str, Any]
    separations: list[float]
    shares: list[float | None]

    @property
    def smallest_separation(self) -> float | None:
        return min(self.separations) if len(self.colors) > 1 else None


def described(book: FixedCodebook, path: Path) -> Description:
    """What there is to tell of the codebook in this file."""
    settings = book.settings()
    colors, origin = settings["colors"], settings["origin"] or {}
    population = origin.get("population") or []
    shares = [100 * held / sum(population) for held in population] or [None] * len(colors)
    return Description(
        title=f"{origin.get('data') or path.name}: {origin.get('builder', 'given')} codebook",
        colors=colors,
        origin=origin,
        separations=separations(np.array(colors)).tolist(),
        shares=shares,
    )
