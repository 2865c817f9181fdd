"""One look at a model: losses, predictions and, where asked, the gradient, from one forward pass.

On a CPU the batch goes through the model in pieces that fit its caches, channels last: the same numbers to
the last bits, two to four times as fast for small networks. On a GPU it goes whole, as it lies.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol, TypeVar
from weakref import WeakSet

import torch

from linocut.attacks.hooks import Model
from linocut.attacks.losses import Loss
from linocut.attacks.pursuit import Pursuit

_PIXELS_A_PIECE = 2**16
Answer = TypeVar("Answer")
# Models that were seen to fail on images laid out channels last; each is asked once a process.
_WANT_PLAIN_LAYOUT: "WeakSet[Model]" = WeakSet()


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


def _pieces(points: torch.Tensor, whole: bool) -> Iterator[tuple[slice, torch.Tensor]]:
    """The rows of each piece and the piece itself, laid out as its device likes it."""
    if points.device.type != "cpu":
        yield slice(None), points.detach()
        return
    pixels = points.shape[2] * points.shape[3]
    rows = len(points) if whole else min(max(_PIXELS_A_PIECE // max(pixels, 1), 8), 256)
    for first in range(0, len(points), max(rows, 1)):
        piece = slice(first, first + rows)
        yield piece, points[piece].detach().to(memory_format=torch.channels_last)


def in_full(logits: torch.Tensor) -> torch.Tensor:
    """Logits of float64 as they are, since rounded ones may name another class; those of other formats in float32."""
    return logits if logits.dtype == torch.float64 else logits.float()


def _in_its_layout(model: Model, piece: torch.Tensor, ask: Callable[[torch.Tensor], Answer]) -> Answer:
    """What is asked of the model; one that takes views of its features (`x.view`) gets the plain layout."""
    plain = False
    with suppress(TypeError):  # what cannot be remembered is tried each time
        plain = model in _WANT_PLAIN_LAYOUT
    if not plain:
        try:
            return ask(piece)
        except RuntimeError as reason:
            if piece.is_contiguous() or "view size is not compatible" not in str(reason):
                raise
        with suppress(TypeError):
            _WANT_PLAIN_LAYOUT.add(model)
    return ask(piece.contiguous())


def logits_of(model: Model, points: torch.Tensor) -> torch.Tensor:
    """The logits at these points, (B, classes), without a gradient."""
    with torch.no_grad():
        pieces = [piece for _, piece in _pieces(points, whole=False)]
        return torch.cat([_in_its_layout(model, piece, lambda x: in_full(model(x))) for piece in pieces])


def look(model: Model, points: torch.Tensor, labels: torch.Tensor, loss: Loss) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and prediction, without a gradient."""
    logits = logits_of(model, points)
    return loss(logits, labels).float(), logits.argmax(dim=1)


def read(model: Model, points: torch.Tensor, labels: torch.Tensor, loss: Loss, *, whole: bool = False) -> Reading:
    """Loss, prediction and gradient from one forward and one backward pass.

    torch.autograd.grad asks for the images' gradient only, so that none of the weights' is computed; and
    unlike torch.func.grad it never drops a transform's own backward rule. What is not a number becomes 0.
    `whole` keeps the batch in one piece, for a model that is tied to the rows of its batch.
    """
    gradient = torch.empty_like(points)
    values, predictions = [], []
    for rows, piece in _pieces(points, whole):
        ask = partial(_climbed, model, labels=labels[rows], loss=loss)
        value, prediction, gradient[rows] = _in_its_layout(model, piece, ask)
        values.append(value)
        predictions.append(prediction)
    return Reading(torch.cat(values), torch.cat(predictions), gradient.nan_to_num_(0.0))


def _climbed(
    model: Model, piece: torch.Tensor, *, labels: torch.Tensor, loss: Loss
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Loss, prediction and gradient of one piece."""
    with torch.enable_grad():
        leaf = piece.detach().requires_grad_()
        logits = in_full(model(leaf))
        value = loss(logits, labels)
        # A model that cuts the graph is as flat as one whose gradient is zero.
        found = torch.autograd.grad(value.sum(), leaf, allow_unused=True)[0] if value.requires_grad else None
    gradient = torch.zeros_like(piece) if found is None else found
    return value.detach().float(), logits.detach().argmax(dim=1), gradient


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
