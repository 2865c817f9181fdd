"""The rows of the paper's tables as choices: how it is trained, behind which transform, and since when."""

import json
from dataclasses import dataclass, replace
from typing import Any

from linocut.errors import InputError

OF_THE_ROW = ("recipe", "data_set", "method", "image_size", "transform", "transform_at", "seed")
CLASSES = {
    "fixed": "FixedCodebook",
    "ab": "AdaptiveBlur",
    "ac": "AdaptiveCodebook",
    "acab": "EssentialFeatures",
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row: how it is trained, behind which of CLASSES (or none), there at "test" or since "train".

    changes: settings of the transform that are not the paper's, by name.
    """

    method: str = "atta"
    transform: str | None = None
    transform_at: str = "train"
    changes: tuple[tuple[str, Any], ...] = ()


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
    """A row of the paper; one with another transform is called acab-retrained@order=bins@lloyd_steps=0.

    >>> row_named("acab-retrained@edge_thresholds=10,20").changes
    (('edge_thresholds', [10, 20]),)
    """
    plain, *told = name.partition("+")[0].split("@")
    if plain not in ROWS:
        raise InputError(f"no row of the paper is called {plain!r}; there are {', '.join(ROWS)}")
    if told and ROWS[plain].transform in (None, "fixed"):
        raise InputError(f"{name}: only an adaptive transform (AC, AB or both) has settings that can be changed here")
    changes = tuple(_change(name, one) for one in told)
    if len(dict(changes)) < len(changes):
        raise InputError(f"{name}: a setting is given twice")
    return replace(ROWS[plain], changes=changes)


def plain_row(name: str) -> str:
    """The row of the paper that a changed one comes from.

    >>> plain_row("ac-retrained@separation=2+epochs=5")
    'ac-retrained'
    """
    return name.partition("+")[0].partition("@")[0]


def training_changes(name: str) -> list[str]:
    """The settings of the training that a row changes: `baseline+epochs=5+batch_size=64` changes two."""
    told = name.split("+")[1:]
    fields = [one.partition("=")[0] for one in told]
    for field in fields:
        if field in OF_THE_ROW:
            raise InputError(f"{name}: {field} is what tells rows apart, choose another row, data set or seed")
        if fields.count(field) > 1:
            raise InputError(f"{name}: {field} is given twice")
    return told


def _change(name: str, told: str) -> tuple[str, Any]:
    """A setting and its value: a number, a word, or several with commas between."""
    setting, equals, text = told.partition("=")
    if not equals or not text:
        raise InputError(f"{name}: got {told!r}, wanted setting=value, such as order=bins")
    values = [_value(one) for one in text.split(",")]
    return setting, values if len(values) > 1 else values[0]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def transform_for(row: Row, preset: str, image_size: int | None = None) -> dict[str, Any] | None:
    """The row's transform as a training config holds it, with the settings of the paper's preset."""
    if row.transform is None:
        return None
    from linocut.transform import modules

    if row.transform == "fixed":
        return fixed_codebook(preset)
    return with_changes(getattr(modules, CLASSES[row.transform]).preset(preset, image_size), row)


def with_changes(module: Any, row: Row) -> dict[str, Any]:
    """The module as a training config holds it, with the settings that the row changes."""
    settings = module.settings()
    for name, value in row.changes:
        if name not in settings:
            raise InputError(f"{type(module).__name__} has no setting {name!r}; there are {', '.join(settings)}")
        several = isinstance(settings[name], list | tuple) and not isinstance(value, list)
        settings[name] = [value] if several else value
    return {"class": type(module).__name__, "settings": type(module)(**settings).settings()}


def fixed_codebook(preset: str) -> dict[str, Any]:
    """The wish for a codebook of the run's own training images, with k, r and softness of the paper's preset."""
    from linocut.transform.presets import FIXED, SOFTNESS

    settings = {"softness": SOFTNESS[preset]} if preset in SOFTNESS else {}
    return {"class": CLASSES["fixed"], "fit": dict(FIXED[preset]), "settings": settings}
