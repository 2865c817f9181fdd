"""What an attack climbs: one number per example, higher = closer to misclassified."""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from linocut.attacks.hooks import NotApplicable
from linocut.errors import InputError

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

_TINY = 1e-12


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """-log of the label's probability, (B,)."""
    return F.cross_entropy(logits, labels, reduction="none")


def margin(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The best other logit minus the label's, (B,): positive exactly when misclassified."""
    column = labels[:, None]
    others = logits.scatter(1, column, float("-inf"))
    return others.max(dim=1).values - logits.gather(1, column).squeeze(1)


def dlr(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The margin over the gap of the first and the third logit, (B,): free of the scale of the logits."""
    top = _largest(logits, 3)
    return margin(logits, labels) / (top[:, 0] - top[:, 2] + _TINY)


def targeted_dlr(logits: torch.Tensor, labels: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The target's logit minus the label's over the spread of the first four logits, (B,)."""
    top = _largest(logits, 4)
    ahead = logits.gather(1, targets[:, None]) - logits.gather(1, labels[:, None])
    return ahead.squeeze(1) / (top[:, 0] - (top[:, 2] + top[:, 3]) / 2 + _TINY)


def _largest(logits: torch.Tensor, count: int) -> torch.Tensor:
    if logits.shape[1] < count:
        raise NotApplicable(f"this loss compares {count} classes, the model has {logits.shape[1]}: use the margin")
    return logits.topk(count, dim=1).values


LOSSES: dict[str, Loss] = {"cross_entropy": cross_entropy, "margin": margin, "dlr": dlr}


def by_name(name: str) -> Loss:
    """The loss of this name."""
    if name not in LOSSES:
        raise InputError(f"loss must be one of {', '.join(LOSSES)}, got {name!r}")
    return LOSSES[name]
