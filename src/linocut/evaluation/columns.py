"""The rows of a packed ledger by columns: a sixth of the size of the same lines compressed, and not a bit is lost.

    rows.safetensors.xz    one tensor a field of Row, all of one length, in canonical order:
        entry                       the place of the entry's name in `run`
        example, label, clean, prediction, steps, queries           whole numbers
        quantised                   the same; the lowest number its format has means none
        applicable, broken, silent  0 or 1
        loss_start, loss_best, loss_end, distance, milliseconds, measure      not a number means none
      of the rows that have an image: imaged, their places, and image, the eight bytes of its digest
      and run, JSON in UTF-8: the seed of the run, and the config of each entry by its name

A row's seed is a hash of the run's seed, its example and its entry, and is left out; rows of which that is not true,
or whose entry has two configs, are not packed.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from linocut.attacks.dice import example_seed
from linocut.errors import InputError
from linocut.evaluation import shards
from linocut.evaluation.rows import FIELDS, Row

NAME = "rows.safetensors.xz"
FLAGS = ("applicable", "broken", "silent")
WHOLE = ("example", "label", "clean", "prediction", "steps", "queries", "quantised")
NUMBERS = ("loss_start", "loss_best", "loss_end", "distance", "milliseconds", "measure")
OF_ALL_ROWS = ("entry", *FLAGS, *WHOLE, *NUMBERS)


def write(folder: Path, rows: Sequence[Row], seed: int) -> None:
    """Puts the rows of a run with this seed in their file."""
    configs = {row.entry: row.config for row in rows}
    place = {name: number for number, name in enumerate(configs)}
    for row in rows:
        if (row.config, row.seed) != (configs[row.entry], example_seed(seed, row.example, row.entry)):
            raise InputError(
                f"{row.entry}, example {row.example}: its row has another config or seed than the others give it, "
                "so it cannot be packed: judge the model again"
            )
    imaged = [(number, row.image) for number, row in enumerate(rows) if row.image is not None]
    columns = {"entry": _whole([place[row.entry] for row in rows])}
    columns |= {name: np.array([getattr(row, name) for row in rows], dtype=np.uint8) for name in FLAGS}
    columns |= {name: _whole([getattr(row, name) for row in rows]) for name in WHOLE}
    columns |= {name: _numbers([getattr(row, name) for row in rows]) for name in NUMBERS}
    columns["imaged"] = np.array([number for number, _ in imaged], dtype=np.int32)
    columns["image"] = _bytes(bytes.fromhex("".join(text for _, text in imaged))).reshape(-1, 8)
    columns["run"] = _bytes(json.dumps({"seed": seed, "entries": configs}).encode())
    shards.write(folder / NAME, {name: torch.from_numpy(column) for name, column in columns.items()})


def read(folder: Path, most: int) -> list[Row]:
    """The rows again, in their order; a file of more than `most` is refused."""
    path = folder / NAME
    tensors = shards.read(path)
    if not _are_columns(tensors, most):
        raise InputError(f"{path} holds no rows that this version reads, or too many: it is damaged")
    columns = {name: tensor.numpy() for name, tensor in tensors.items()}
    seed, configs = _run(columns["run"], path)
    names, examples = list(configs), columns["example"].tolist()
    numbers, places = columns["entry"], columns["imaged"]
    if ((numbers < 0) | (numbers >= len(names))).any() or ((places < 0) | (places >= len(numbers))).any():
        raise InputError(f"{path} names entries or rows that it does not have: it is damaged")
    entries = [names[number] for number in numbers.tolist()]
    images: list[str | None] = [None] * len(entries)
    for number, digest in zip(places.tolist(), columns["image"], strict=True):
        images[number] = digest.tobytes().hex()
    fields: dict[str, Sequence[Any]] = {"entry": entries, "image": images}
    fields["config"] = [configs[name] for name in entries]
    fields["seed"] = [example_seed(seed, *pair) for pair in zip(examples, entries, strict=True)]
    fields |= {name: columns[name].astype(bool).tolist() for name in FLAGS}
    fields |= {name: columns[name].tolist() for name in WHOLE}
    fields |= {name: _or_none(columns[name]) for name in (*NUMBERS, "quantised")}
    return [Row(**dict(zip(FIELDS, values, strict=True))) for values in zip(*map(fields.get, FIELDS), strict=True)]


def _bytes(content: bytes) -> np.ndarray:
    return np.frombuffer(bytearray(content), dtype=np.uint8)


def _whole(values: list[int | None]) -> np.ndarray:
    """The narrowest whole numbers that hold these, the lowest of them for None."""
    known = [value for value in values if value is not None]
    for kind in (np.int16, np.int32, np.int64):
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        if not known or low < min(known) <= max(known) <= high:
            return np.array([low if value is None else value for value in values], dtype=kind)
    raise AssertionError("a count that does not fit 64 bits")


def _numbers(values: list[float | None]) -> np.ndarray:
    """float32 where it holds each of these exactly, else float64; not a number for None."""
    wide = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    with np.errstate(over="ignore"):
        narrow = wide.astype(np.float32)
    return narrow if np.array_equal(narrow.astype(np.float64), wide, equal_nan=True) else wide


def _or_none(column: np.ndarray) -> list[Any]:
    """The values, None for those that mean it."""
    nothing = np.isnan(column) if column.dtype.kind == "f" else column == np.iinfo(column.dtype).min
    return [None if none else value for none, value in zip(nothing.tolist(), column.tolist(), strict=True)]


def _are_columns(tensors: shards.Tensors, most: int) -> bool:
    """Whether these are the columns of at most so many rows, each of its kind and all of one length."""
    kinds = {key: {torch.int16, torch.int32, torch.int64} for key in ("entry", "imaged", *WHOLE)}
    kinds |= {key: {torch.float32, torch.float64} for key in NUMBERS}
    kinds |= {key: {torch.uint8} for key in (*FLAGS, "image", "run")}
    if set(tensors) != set(kinds) or any(tensors[name].dtype not in kinds[name] for name in kinds):
        return False
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    (many, *more), images = shapes["entry"] or (0, 0), len(tensors["imaged"]) if shapes["imaged"] else -1
    return (
        not more
        and many <= most
        and all(shapes[name] == (many,) for name in OF_ALL_ROWS)
        and (shapes["imaged"], shapes["image"]) == ((images,), (images, 8))
        and all(bool((tensors[name] <= 1).all()) for name in FLAGS)
    )


def _run(text: np.ndarray, path: Path) -> tuple[int, dict[str, str]]:
    """The seed of the run, and the config of each entry."""
    try:
        held = json.loads(text.tobytes())
        seed, configs = held["seed"], held["entries"]
        if type(seed) is not int or not all(isinstance(config, str) for config in configs.values()):
            raise ValueError("the seed is no number, or a config no text")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as reason:
        raise InputError(f"{path} does not say what run it is of ({reason}): it is damaged") from None
    return seed, configs
