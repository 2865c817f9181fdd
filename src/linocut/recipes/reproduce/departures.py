"""In what a training departs from the paper's, in words that a table can carry."""

from collections.abc import Callable

from linocut.recipes.training import PAPER, recipe
from linocut.recipes.training.rows import plain_row
from linocut.training.config import TrainingConfig

# What a reader compares figures by; the learning rate and its schedule follow from these in our recipes.
TOLD: tuple[Callable[[TrainingConfig], str], ...] = (
    lambda config: config.architecture,
    lambda config: f"pictures of {config.image_size} pixels",
    lambda config: f"{config.loss} loss",
    lambda config: f"{config.norm} {config.eps:.3g}",
    lambda config: f"{config.epochs} epochs",
    lambda config: f"{config.num_steps} attack step{'s' * (config.num_steps != 1)}",
    lambda config: f"batches of {config.batch_size}",
    lambda config: config.precision,
)


def departures(config: TrainingConfig) -> str:
    """What is not as in the paper's recipe of the same row, each with the paper's; empty where all is.

    >>> from linocut.recipes.training import recipe
    >>> departures(recipe("fast-mnist/ac-retrained"))
    '20 epochs (the paper: 60), 2 attack steps (40), batches of 512 (64), bfloat16 (float32)'
    """
    if config.data_set not in PAPER:
        return ""
    published = recipe(f"{config.data_set}/{plain_row(config.recipe.partition('/')[2])}")
    pairs = [(told(config), told(published)) for told in TOLD]
    differing = [(ours, _short(ours, theirs)) for ours, theirs in pairs if ours != theirs]
    return ", ".join(f"{ours} ({'the paper: ' * (n == 0)}{theirs})" for n, (ours, theirs) in enumerate(differing))


def _short(ours: str, theirs: str) -> str:
    """The paper's value without the words that both share."""
    shared = set(ours.split()) & set(theirs.split())
    return " ".join(word for word in theirs.split() if word not in shared)
