"""The rows of the paper's tables as choices: how it is trained, behind which transform, and since when."""

from dataclasses import dataclass
from typing import Any

from linocut.errors import InputError

CLASSES = {
    "fixed": "FixedCodebook",
    "ab": "AdaptiveBlur",
    "ac": "AdaptiveCodebook",
    "acab": "EssentialFeatures",
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row: how it is trained, behind which of CLASSES (or none), there at "test" or since "train"."""

    method: str = "atta"
    transform: str | None = None
    transform_at: str = "train"


ROWS = {
    "baseline": Row(),
    "fixed-pretrained": Row(transform="fixed", transform_at="test"),
    "fixed-retrained": Row(transform="fixed"),
    "ab-retrained": Row(transform="ab"),
    "ac-pretrained": Row(transform="ac", transform_at="test"),
    "ac-retrained": Row(transform="ac"),
    "acab-pretrained": Row(transform="acab", transform_at="test"),
    "acab-retrained": Row(transform="acab"),
    "natural": Row(method="natural"),
    "natural-fixed-pretrained": Row(method="natural", transform="fixed", transform_at="test"),
    "natural-fixed-retrained": Row(method="natural", transform="fixed"),
    "natural-acab-pretrained": Row(method="natural", transform="acab", transform_at="test"),
    "natural-acab-retrained": Row(method="natural", transform="acab"),
}


def row_named(name: str) -> Row:
    if name not in ROWS:
        raise InputError(f"no row of the paper is called {name!r}; there are {', '.join(ROWS)}")
    return ROWS[name]


def transform_for(row: Row, preset: str, image_size: int | None = None) -> dict[str, Any] | None:
    """The row's transform as a training config holds it, with the settings of the paper's preset."""
    if row.transform is None:
        return None
    from linocut.transform import modules

    if row.transform == "fixed":
        return fixed_codebook(preset)
    module = getattr(modules, CLASSES[row.transform]).preset(preset, image_size)
    return {"class": CLASSES[row.transform], "settings": module.settings()}


def fixed_codebook(preset: str) -> dict[str, Any]:
    """The wish for a codebook of the run's own training images, with k, r and softness of the paper's preset."""
    from linocut.transform.presets import FIXED, SOFTNESS

    settings = {"softness": SOFTNESS[preset]} if preset in SOFTNESS else {}
    return {"class": CLASSES["fixed"], "fit": dict(FIXED[preset]), "settings": settings}
