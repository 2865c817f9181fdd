"""The pictures of a ledger, the most telling first."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from linocut.evaluation.record import Record
from linocut.evaluation.rows import Row
from linocut.report.pictures import embedded, magnified, strip
from linocut.report.sidecar import Kept, Sidecar
from linocut.report.sources import Subject
from linocut.report.ssim import ssim
from linocut.report.words import NORMS

MISSED = "survived the published attack, broke in the worst case"
BROKEN = "broken as published"
UNTRIED = "broken in the worst case; the published attack did not meet it"
STANDS = "stands against everything tried"
INTEREST = (MISSED, BROKEN, UNTRIED, STANDS)
SMALL = 64  # pixels; below that a picture is shown in whole, sharp pixels


@dataclass(frozen=True, kw_only=True)
class Choice:
    """An example in a norm: what became of it, and the row and tensors to show."""

    status: str
    norm: str
    row: Row
    kept: Kept
    natural: torch.Tensor


def chosen(subject: Subject, sidecar: Sidecar) -> list[Choice]:
    """All that can be shown, sorted by how interesting, then in the order of the sample."""
    found = [choice for norm in subject.record.norms for choice in _of_norm(subject.record, norm, sidecar)]
    return sorted(found, key=lambda choice: INTEREST.index(choice.status))


def pictured(choice: Choice, subject: Subject) -> dict[str, Any]:
    """A choice as the template shows it."""
    natural, attacked, row = choice.natural, choice.kept["image"], choice.row
    change, factor = magnified(natural, attacked)
    label, taken = class_name(subject.record, row.label), class_name(subject.record, row.prediction)
    images = [
        {"caption": "natural", "source": embedded(natural), "alt": f"natural image of class {label}"},
        {
            "caption": f"change ×{factor}",
            "source": embedded(change),
            "alt": f"what the attack added, {factor} times magnified around grey",
        },
        {"caption": "adversarial", "source": embedded(attacked), "alt": f"attacked image, taken for {taken}"},
    ]
    if "transformed" in choice.kept and choice.kept["transformed"].ndim == 3:
        seen = choice.kept["transformed"]
        images.append({"caption": "transformed", "source": embedded(seen), "alt": "what the network saw of it"})
    return {
        "status": choice.status,
        "norm": choice.norm,
        "norm_name": NORMS[choice.norm],
        "label": label,
        "taken": taken,
        "broken": row.broken,
        "attack": row.entry.partition("/")[2],
        "example": row.example,
        "distance": row.distance,
        "ssim": float(ssim(natural[None], attacked[None])),
        "images": images,
        "palette": _palette(choice.kept),
        "sharp": natural.shape[-1] < SMALL,
    }


def class_name(record: Record, label: int) -> str:
    """The class's own name where the data set has one, else its number."""
    classes = record.settings["classes"]
    if label < 0:
        return "no class (logits not finite)"
    return str(classes[label]) if label < len(classes) else str(label)


def _of_norm(record: Record, norm: str, sidecar: Sidecar) -> Iterator[Choice]:
    published = list(record.published(norm))
    worst = sorted(record.counting(norm), key=lambda name: record.entries[name]["column"] != "worst")
    met = {example for name in published for example in record.of[name]}
    broken_as_published, lost = record.broken_by(published), record.broken_by(worst)
    right = set(record.of["clean"]) - record.wrong()
    for example, natural in sidecar.natural.items():
        if example not in right:
            continue
        if example in broken_as_published:
            status, names = BROKEN, published
        elif example in lost:
            status, names = (MISSED if example in met else UNTRIED), worst
        else:
            status, names = STANDS, published + worst
        for name in names:
            row, kept = record.of[name].get(example), sidecar.of(name).get(example)
            if (
                row is not None
                and kept is not None
                and row.broken == (status != STANDS)
                and kept["image"].shape == natural.shape
            ):
                yield Choice(status=status, norm=norm, row=row, kept=kept, natural=natural)
                break


def _palette(kept: Kept) -> dict[str, Any] | None:
    if "palette" not in kept or "num_colors" not in kept:
        return None
    count = int(kept["num_colors"])
    colors = kept["palette"][:count]
    if colors.ndim != 2 or colors.shape[1] not in (1, 3) or not len(colors):
        return None
    told = "1 colour" if count == 1 else f"{count} colours"
    return {"source": embedded(strip(colors)), "told": told}
