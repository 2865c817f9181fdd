"""The paper's figures, from the user's own ledgers: a region before and after the transform, ambiguous attacks."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from linocut.evaluation.rows import Row
from linocut.report.gallery import SMALL, STANDS, Choice, class_name
from linocut.report.pictures import embedded, hottest_window
from linocut.report.sidecar import Sidecar
from linocut.report.sources import Subject
from linocut.report.words import NORMS

REGIONS, PAIRS = 2, 4  # shown of a ledger
SHARE = 4  # a region has a quarter of the image's shorter side, and at least 4 pixels


def regions(subject: Subject, choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """Where an L2 attack put most of its change: the image, and the region natural, attacked and transformed.

    The most concentrated attacks come first. Paper: the figure of isolated pixels in its section on limitations.
    """
    found: list[dict[str, Any]] = []
    for choice in choices:
        seen = choice.kept.get("transformed")
        if choice.norm != "l2" or choice.status == STANDS or seen is None or seen.shape != choice.natural.shape:
            continue
        attacked, natural = choice.kept["image"].float(), choice.natural
        height, width = natural.shape[1:]
        side = min(max(4, min(height, width) // SHARE), height, width)
        change = attacked - natural
        top, left = hottest_window(change, side)
        cut = (slice(None), slice(top, top + side), slice(left, left + side))
        energy = float(change.double().square().sum())
        found.append(
            {
                "share": float(change[cut].double().square().sum()) / energy if energy else 0.0,
                "ledger": subject.folder,
                "label": class_name(subject.record, choice.row.label),
                "taken": class_name(subject.record, choice.row.prediction),
                "attack": choice.row.entry.partition("/")[2],
                "whole": embedded(natural),
                "box": {"x": left / width, "y": top / height, "w": side / width, "h": side / height},
                "natural": embedded(natural[cut]),
                "attacked": embedded(attacked[cut]),
                "seen": embedded(seen[cut]),
                "side": side,
            }
        )
    return sorted(found, key=lambda region: -region["share"])[:REGIONS]


def ambiguous(subject: Subject, sidecar: Sidecar) -> list[dict[str, Any]]:
    """Pairs of natural and attacked images, those first in which least is left of the true class.

    Of the published attack, which runs all its steps; its cross-entropy L leaves the true class exp(-L).
    """
    record, found = subject.record, []
    for norm in record.norms:
        name = f"{norm}/pgd-published"
        attack = record.entries.get(name, {}).get("attack")
        if not isinstance(attack, dict) or attack.get("loss") != "cross_entropy":
            continue
        for example, kept in sidecar.of(name).items():
            row, natural = record.of[name].get(example), sidecar.natural.get(example)
            if row is None or natural is None or not row.broken or row.loss_best is None or row.clean != row.label:
                continue
            left = math.exp(-max(0.0, row.loss_best))
            found.append((left, norm, row, natural, kept["image"]))
    found.sort(key=lambda pair: pair[0])
    return [_pair(subject, *pair) for pair in found[:PAIRS]]


def _pair(
    subject: Subject, left: float, norm: str, row: Row, natural: torch.Tensor, attacked: torch.Tensor
) -> dict[str, Any]:
    return {
        "left": left,
        "norm_name": NORMS[norm],
        "norm": norm,
        "ledger": subject.folder,
        "label": class_name(subject.record, row.label),
        "taken": class_name(subject.record, row.prediction),
        "natural": embedded(natural),
        "attacked": embedded(attacked),
        "sharp": natural.shape[-1] < SMALL,
    }
