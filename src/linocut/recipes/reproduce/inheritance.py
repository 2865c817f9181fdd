"""Networks that were published before and need not be trained again: rows can join results that lie there."""

import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import cast

from linocut.errors import InputError
from linocut.files import UNFINISHED
from linocut.models import load, read_card
from linocut.recipes.reproduce.work import Precision
from linocut.training.config import TrainingConfig

BESIDE = ("config.json", "log.jsonl", "curves.png")
TAKEN_OVER = "taken over"  # what a training tells that need not run


def lies_there(
    results: Path, place: str, config: TrainingConfig, *, train: str, test: str, free: tuple[str, ...]
) -> bool:
    """Whether the network of a place among the results is what this training would make.

    train, test: hashes of the images; free: fields of the config in which the two may differ.
    """
    source = results / place / "model"
    try:
        card = read_card(source).card
        held = {name: value for name, value in card.recipe.items() if name in config.to_json()}
        differs = [name for name, _, _ in config.changes(held) if name not in free]
        if differs or (card.recipe.get("train_sha256"), card.metrics.get("test_sha256")) != (train, test):
            return False
        load(source)  # InputError where weights are damaged or were left out
    except (InputError, OSError):
        return False
    return True


def take_over(results: Path, out: Path, place: str) -> None:
    """Copy the network of a place among the results, and what lies beside it."""
    shutil.copytree(results / place / "model", out / place / "model", dirs_exist_ok=True, ignore=UNFINISHED)
    for name in BESIDE:
        if (results / place / name).is_file():
            shutil.copyfile(results / place / name, out / place / name)


def trained_in(results: Path, data_sets: Collection[str]) -> Precision | None:
    """The format that networks among the results were trained in; None where they differ or there is none.

    data_sets: those whose networks are asked.
    """
    found = set()
    for data_set in data_sets:
        for folder in results.glob(f"{data_set}/*/seed-*/model"):
            with suppress(InputError, OSError):  # damaged: it is not taken over, and says nothing
                found.add(read_card(folder).card.recipe.get("precision"))
    return cast(Precision, found.pop()) if len(found) == 1 and found <= {"float32", "bfloat16"} else None
