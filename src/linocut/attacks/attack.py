"""What every attack is, and what it gives back."""

from typing import NamedTuple, Protocol

import torch

from linocut.attacks.dice import Dice
from linocut.attacks.hooks import Model
from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError

ROUNDING = 1e-5


class Result(NamedTuple):
    """What one attack did to each example of a batch; every tensor has B rows.

    `images` are the returned points, `prediction` what the model says of them, `broken` whether that is
    wrong, `loss_best` their loss. `silent` marks examples of which some iterate was misclassified although
    the returned point is not. `steps` counts gradients, `queries` forward passes, both of this example
    alone. `trace` is the loss of each iterate, NaN after the example has left.
    """

    images: torch.Tensor
    broken: torch.Tensor
    prediction: torch.Tensor
    loss_start: torch.Tensor
    loss_best: torch.Tensor
    loss_end: torch.Tensor
    steps: torch.Tensor
    queries: torch.Tensor
    trace: torch.Tensor | None
    silent: torch.Tensor


class Attack(Protocol):
    """Anything with a name that moves images inside a threat model."""

    @property
    def name(self) -> str:
        """What the ledger calls it."""
        ...

    def run(
        self,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        dice: Dice,
        starts: torch.Tensor | None = None,
    ) -> Result:
        """The result on a batch: images float32 (B,C,H,W) in [0,1], labels int64 (B,), one die an example."""
        ...


def require_batch(images: torch.Tensor, labels: torch.Tensor) -> None:
    """Nothing, or an InputError where these are no images in [0,1] with their labels: a ball around others is none."""
    if images.ndim != 4 or images.dtype not in (torch.float32, torch.float64):
        raise InputError(
            f"images must be float32 (B,C,H,W) in [0,1], got {images.dtype} {tuple(images.shape)}; "
            "of uint8 pixels take pixels.float() / 255"
        )
    if images.requires_grad:
        raise InputError("images must carry no gradient: give images.detach()")
    if labels.dtype != torch.int64 or labels.shape != images.shape[:1]:
        raise InputError(
            f"labels must be int64 ({len(images)},), one for each image, got {labels.dtype} {tuple(labels.shape)}"
        )
    if images.numel():
        low, high = (float(end) for end in images.detach().aminmax())
        if not (low >= -ROUNDING and high <= 1 + ROUNDING):  # NaN is neither
            raise InputError(
                f"images must lie in [0,1], got values from {low:.4g} to {high:.4g}: divide by 255, or clamp"
            )


def merged(first: Result, second: Result, rows: torch.Tensor) -> Result:
    """The better of two runs for each example, where `second` attacked only these rows of `first`.

    Broken beats unbroken, then the higher loss wins; steps and queries add up; the trace is the first's.
    """
    better = (second.broken & ~first.broken[rows]) | (
        (second.broken == first.broken[rows]) & (second.loss_best > first.loss_best[rows])
    )
    chosen = rows[better]

    def replaced(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        return old.index_copy(0, chosen, new[better])

    broken = replaced(first.broken, second.broken)
    seen = first.broken | first.silent
    seen[rows] |= second.broken | second.silent
    return Result(
        images=replaced(first.images, second.images),
        broken=broken,
        prediction=replaced(first.prediction, second.prediction),
        loss_start=first.loss_start,
        loss_best=replaced(first.loss_best, second.loss_best),
        loss_end=first.loss_end.index_copy(0, rows, second.loss_end),
        steps=first.steps.index_add(0, rows, second.steps),
        queries=first.queries.index_add(0, rows, second.queries),
        trace=first.trace,
        silent=seen & ~broken,
    )
