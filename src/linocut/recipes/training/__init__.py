"""Recipes by name: functions that return frozen training configs, with their costs and expected numbers."""

import json
from dataclasses import replace
from pathlib import Path

from linocut.errors import InputError
from linocut.recipes.training import paper
from linocut.recipes.training.fast import fast
from linocut.recipes.training.rows import ROWS, training_changes
from linocut.recipes.training.smoke import smoke
from linocut.training.config import TrainingConfig

PAPER = {
    "mnist": paper.mnist,
    "fashion-mnist": paper.fashion_mnist,
    "cifar-10": paper.cifar_10,
    "gtsrb": paper.gtsrb,
    "resisc45": paper.resisc45,
    "imagenette": paper.imagenette,
}


def names() -> list[str]:
    """Every recipe, in order."""
    sets = [f"{prefix}{data_set}/{row}" for data_set in PAPER for prefix in ("", "fast-") for row in ROWS]
    return ["smoke", *(f"smoke/{row}" for row in ROWS), *sets]


def recipe(name: str) -> TrainingConfig:
    """The config of a recipe: `smoke`, `cifar-10/acab-retrained`, `fast-cifar-10/baseline` and so on.

    `cifar-10/acab-retrained@order=bins` is the row with another setting of its transform, `smoke/baseline+epochs=5`
    with another setting of its training. A name that ends in .json is the config.json of a run, to be repeated.

    >>> recipe("cifar-10/acab-retrained").epochs
    38
    """
    if name.endswith(".json"):
        return _of_run(Path(name))
    changes = training_changes(name)
    if changes:
        return replace(recipe(name.partition("+")[0]).with_settings(changes), recipe=name)
    data_set, _, row = name.partition("/")
    if data_set == "smoke":
        return smoke(row) if row else smoke()
    function = PAPER.get(data_set.removeprefix("fast-"))
    if function is None:
        raise InputError(
            f"no recipe is called {name!r}: wanted smoke, DATA/ROW or fast-DATA/ROW with DATA of {', '.join(PAPER)}; "
            "`linocut train --list` names them all"
        )
    config = function(row or "baseline")
    return fast(config) if data_set.startswith("fast-") else config


def _of_run(path: Path) -> TrainingConfig:
    """The config that a run wrote; every value must be of its setting's type, as for `--set`."""
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as reason:
        raise InputError(f"{path} cannot be read as the config of a run ({reason})") from None
    needed = ("recipe", "data_set", "architecture")
    if not isinstance(held, dict) or not all(isinstance(held.get(name), str) for name in needed):
        raise InputError(f"{path} is no config of a run: wanted an object of settings, with {', '.join(needed)}")
    try:
        plain = TrainingConfig(**{name: held[name] for name in needed})
        return plain.with_settings([f"{name}={json.dumps(value)}" for name, value in held.items()])
    except InputError as reason:
        raise InputError(f"{path}: {reason}") from None


__all__ = ["PAPER", "ROWS", "fast", "names", "recipe", "smoke"]
