"""Numbers taken of a model with no attack: the input gradient, whether it repeats itself, what it has seen."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from linocut.attacks.gradients import in_full
from linocut.evaluation.case import Case, Model, unit


@dataclass(frozen=True, kw_only=True)
class InputGradient:
    """The L2 length of the cross-entropy's gradient at the image; NaN where it is not finite."""

    def measure(self, case: Case, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        images = unit(pixels).requires_grad_()
        loss = F.cross_entropy(in_full(case.model(images)), labels, reduction="sum")
        if not loss.requires_grad:  # the model cuts the graph
            return torch.zeros(len(images))
        (gradient,) = torch.autograd.grad(loss, images, allow_unused=True)
        if gradient is None:
            return torch.zeros(len(images))
        # In float64: a length of 1e-30 is small, but not zero.
        return gradient.flatten(1).double().norm(dim=1)


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """How many of four further forwards give other bits than the first, for each example; on the grid or off it."""

    def measure(self, case: Case, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return differing_forwards(case.raw, unit(pixels)).double()


@torch.no_grad()
def differing_forwards(model: Model, images: torch.Tensor) -> torch.Tensor:
    """How many of four forwards after the first give other logits, int (B,), at these images or a little off the grid.

    Off the grid of whole levels too, since a model may be random there alone. NaN equals NaN here.
    """
    differing = []
    for shown in (images, 0.001 + 0.998 * images):
        first, *others = (model(shown).nan_to_num(nan=12345.0) for _ in range(5))
        differing.append(torch.stack([(other != first).any(dim=1) for other in others]).sum(dim=0))
    return torch.maximum(*differing)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """1 for an image that is also among the training images, pixel for pixel."""

    def measure(self, case: Case, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        assert case.seen is not None
        return torch.tensor([float(digest in case.seen) for digest in pixel_digests(pixels)])


def pixel_digests(pixels: torch.Tensor) -> Iterable[bytes]:
    """16 bytes for each uint8 image, equal exactly for equal pixels."""
    for image in pixels.cpu():
        yield hashlib.sha256(image.contiguous().numpy().tobytes()).digest()[:16]
