"""Which model a ledger is about, as far as its card says, and which row of the paper that is."""

import math
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from linocut.evaluation.balls import PUBLISHED
from linocut.evaluation.record import Record
from linocut.report.paper import PaperRow, find, is_another

TRANSFORMS = {
    None: "none",
    "AdaptiveBlur": "ab",
    "AdaptiveCodebook": "ac",
    "EssentialFeatures": "ac+ab",
    "FixedCodebook": "fixed",
}


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A model's name and, where it has a card, how it was trained, behind which transform, and since when."""

    name: str
    dataset: str
    training: str | None
    transform: str | None
    transform_at: str | None
    seed: int | None  # of the training
    paper: PaperRow | None
    paper_size: bool  # whether the images have the paper's size
    network: str | None  # its architecture

    @property
    def published_attack(self) -> str:
        """The attack behind the paper's white-box figures: fixed codebooks met the loop of Chen et al."""
        return "chen-published" if self.transform == "fixed" else "pgd-published"


def identify(record: Record) -> Identity:
    """What the header says; None wherever it says nothing that can be used."""
    settings, card = record.settings, record.made_with.get("card")
    card = card if isinstance(card, dict) else {}
    recipe = card["recipe"] if isinstance(card.get("recipe"), dict) else {}
    dataset, model = str(settings.get("data")), str(settings.get("model"))
    known = _known(card, recipe) if card and settings.get("preprocess") is None else (None, None, None)
    named = recipe.get("recipe")
    changed = isinstance(named, str) and is_another(named)
    row = find(dataset, *known) if None not in known and not changed else None  # type: ignore[arg-type]
    published, built = PUBLISHED.get(dataset), card.get("architecture")
    return Identity(
        name=named if isinstance(named, str) and named else _short(model),
        dataset=dataset,
        training=known[0],
        transform=known[1],
        transform_at=known[2],
        seed=recipe["seed"] if isinstance(recipe.get("seed"), int) else None,
        paper=row,
        paper_size=published is not None and published.values == settings["dimensions"],
        network=str(built["name"]) if isinstance(built, dict) and "name" in built else None,
    )


def paper_figure(identity: Identity, record: Record, norm: str | None, attack: str = "") -> float | None:
    """The paper's percentage for the clean accuracy (no norm) or for a published attack, at the paper's own radius."""
    row = identity.paper
    if row is None or norm is None:
        return row.accuracy if row else None
    published = PUBLISHED[row.dataset]
    stretch = math.sqrt(record.settings["dimensions"] / published.values)
    radius = published.linf_eps if norm == "linf" else published.l2_eps * stretch
    if not math.isclose(record.norms[norm], radius, rel_tol=0.02):  # 8/255 and 0.031 are the same to the paper
        return None
    if attack == identity.published_attack:
        return row.linf_pgd if norm == "linf" else row.l2_pgd
    if attack == "square-published":
        return row.linf_square_500 if norm == "linf" else row.l2_square_500
    return None


def _known(card: dict[str, Any], recipe: dict[str, Any]) -> tuple[str | None, str | None, str | None]:
    """Training, transform and when it came, in the paper's words."""
    front = card.get("transform")
    front_class = front.get("class") if isinstance(front, dict) else None
    transform = TRANSFORMS.get(front_class if isinstance(front_class, str) else None)
    training, at = recipe.get("method"), recipe.get("transform_at")
    return (
        training if isinstance(training, str) else None,
        transform,
        "none" if transform == "none" else at if isinstance(at, str) else None,
    )


def _short(model: str) -> str:
    """The last parts of a path, which tell models apart; module:function as it is."""
    parts = [part for part in PurePath(model).parts if part != "model"]
    return "/".join(parts[-2:]) or model
