"""Curves of a ledger: accuracy over the radius, and the loss over the steps of the published attack."""

from dataclasses import dataclass
from typing import Any

import torch

from linocut.evaluation.record import Record, Share
from linocut.report.sidecar import Sidecar


@dataclass(frozen=True, kw_only=True)
class LossCurve:
    """The loss at each step, over the examples of the sidecar: median and quartiles."""

    name: str
    loss: str
    examples: int
    middle: list[float]
    low: list[float]
    high: list[float]


def over_radius(record: Record, norm: str) -> list[tuple[float, Share]]:
    """Radius and accuracy of the radius-* probes, the smallest radius first, with the clean accuracy at zero."""
    names = [name for name in record.names(norm=norm) if name.startswith(f"{norm}/radius-") and record.ran(name)]
    names.sort(key=lambda name: record.entries[name]["eps"])
    if not names:
        return []
    return [(0.0, record.after("clean", record.of[names[0]]))] + [
        (record.entries[name]["eps"], record.after(name)) for name in names
    ]


def over_steps(record: Record, norm: str, sidecar: Sidecar) -> list[LossCurve]:
    """The published attack and the one of twice its steps, over the same examples; none without kept traces.

    Only these two run all their steps on every example: where the broken ones leave, an average says little.
    """
    found = []
    for short in ("pgd-published", "double-steps"):
        name = f"{norm}/{short}"
        shown = {example: tensors["trace"] for example, tensors in sidecar.of(name).items() if "trace" in tensors}
        if not shown or name not in record.entries:
            continue
        traces = torch.stack(list(shown.values())).double()
        whole = traces[traces.isfinite().all(dim=1)]
        if not len(whole):
            continue
        low, middle, high = torch.quantile(whole, torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64), dim=0).tolist()
        loss = _loss_name(record.entries[name].get("attack"))
        found.append(LossCurve(name=short, loss=loss, examples=len(whole), middle=middle, low=low, high=high))
    return found


def _loss_name(attack: Any) -> str:
    named = attack.get("loss") if isinstance(attack, dict) else None
    return named.replace("_", "-") if isinstance(named, str) else "loss"
