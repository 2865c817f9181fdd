"""Recipes by name: functions that return frozen training configs, with their costs and expected numbers."""

from dataclasses import replace

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
    with another setting of its training.

    >>> recipe("cifar-10/acab-retrained").epochs
    38
    """
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


__all__ = ["PAPER", "ROWS", "fast", "names", "recipe", "smoke"]
