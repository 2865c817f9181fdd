"""One look at a model: losses, predictions and, where asked, the gradient, from one forward pass."""

from typing import NamedTuple, Protocol

import torch

from linocut.attacks.hooks import Model
from linocut.attacks.losses import Loss
from linocut.attacks.pursuit import Pursuit


class Reading(NamedTuple):
    """Loss (B,), prediction (B,) and gradient (B,C,H,W) at some points, and the forward passes it took."""

    loss: torch.Tensor
    prediction: torch.Tensor
    gradient: torch.Tensor
    queries: int = 1


class Probe(Protocol):
    """Reads the points of a pursuit at a step; what differs between gradient attacks."""

    def __call__(self, points: torch.Tensor, pursuit: Pursuit, step: int) -> Reading:
        """The reading at these points, one for each row of the pursuit."""
        ...


def look(
    model: Model, points: torch.Tensor, labels: torch.Tensor, loss: Loss
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and prediction, without a gradient."""
    with torch.no_grad():
        logits = model(points)
        return loss(logits, labels), logits.argmax(dim=1)


def read(model: Model, points: torch.Tensor, labels: torch.Tensor, loss: Loss) -> Reading:
    """Loss, prediction and gradient from one forward and one backward pass.

    torch.autograd.grad asks for the images' gradient only, so that none of the weights' is computed; and
    unlike torch.func.grad it never drops a transform's own backward rule. What is not a number becomes 0.
    """
    with torch.enable_grad():
        leaf = points.detach().requires_grad_()
        logits = model(leaf)
        values = loss(logits, labels)
        if values.requires_grad:
            (gradient,) = torch.autograd.grad(values.sum(), leaf, allow_unused=True)
        else:
            gradient = None  # the model cuts the graph: as flat as a gradient of zero
    flat = torch.zeros_like(points) if gradient is None else gradient.nan_to_num_(0.0)
    return Reading(values.detach(), logits.detach().argmax(dim=1), flat)


class Direct:
    """Reads the model that is attacked: one pass gives the iterate's loss and the next step's gradient."""

    def __init__(self, model: Model, loss: Loss) -> None:
        self.model, self.loss = model, loss

    def __call__(self, points: torch.Tensor, pursuit: Pursuit, step: int) -> Reading:
        return read(self.model, points, pursuit.labels, self.loss)


class Guided:
    """Gradients from one model, losses and predictions from the one that is attacked."""

    def __init__(self, judge: Model, guide: Model, loss: Loss) -> None:
        self.judge, self.guide, self.loss = judge, guide, loss

    def __call__(self, points: torch.Tensor, pursuit: Pursuit, step: int) -> Reading:
        loss, prediction = look(self.judge, points, pursuit.labels, self.loss)
        gradient = read(self.guide, points, pursuit.labels, self.loss).gradient
        return Reading(loss, prediction, gradient, queries=2)
