"""Networks that were published before and need not be trained again: rows can join results that lie there."""

import json
import shutil
from pathlib import Path
from typing import cast

from linocut.errors import InputError
from linocut.models import load, read_card
from linocut.recipes.reproduce.work import Precision
from linocut.training.config import TrainingConfig

BESIDE = ("config.json", "log.jsonl", "curves.png")


def lies_there(
    results: Path, place: str, config: TrainingConfig, *, train: str, test: str, free: tuple[str, ...]
) -> bool:
    """Whether the network of a place among the results is what this training would make.

    train, test: hashes of the images; free: fields of the config in which the two may differ.
    """
    source = results / place / "model"
    try:
        card = read_card(source).card
        load(source)  # InputError where weights are damaged or were left out
    except (InputError, OSError):
        return False
    held = {name: value for name, value in card.recipe.items() if name in config.to_json()}
    differs = [name for name, _, _ in config.changes(held) if name not in free]
    return not differs and (card.recipe.get("train_sha256"), card.metrics.get("test_sha256")) == (train, test)


def take_over(results: Path, out: Path, place: str) -> None:
    """Copy the network of a place among the results, and what lies beside it."""
    shutil.copytree(results / place / "model", out / place / "model", dirs_exist_ok=True)
    for name in BESIDE:
        if (results / place / name).is_file():
            shutil.copyfile(results / place / name, out / place / name)


def trained_in(results: Path) -> Precision | None:
    """The format that the networks among the results were trained in; None where they differ or none lies there."""
    try:
        found = {json.loads(file.read_bytes())["precision"] for file in results.glob("*/*/seed-*/config.json")}
    except (OSError, ValueError, LookupError, TypeError):
        return None  # damaged: it cannot be joined, and a training says so by being due
    return cast(Precision, found.pop()) if len(found) == 1 and found <= {"float32", "bfloat16"} else None
