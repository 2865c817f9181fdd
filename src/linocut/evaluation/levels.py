"""Adversarial images in whole grey levels that a model still takes for something else, inside the same ball."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from linocut.attacks.gradients import in_full
from linocut.attacks.threat import ThreatModel
from linocut.attacks.whole_levels import LEVELS, SHRINKS, reach
from linocut.evaluation.balls import holds
from linocut.evaluation.case import Model, predict, unit
from linocut.evaluation.rounding import rounded_onwards


@torch.no_grad()
def in_levels(
    model: Model, images: torch.Tensor, pixels: torch.Tensor, labels: torch.Tensor, threat: ThreatModel
) -> tuple[torch.Tensor, torch.Tensor]:
    """Each image in whole levels, uint8 (K,C,H,W), and whether it may stand for the image it was made of, bool (K,).

    images: float32; pixels: the natural images, uint8. Of several roundings the one that the model is most wrong
    about is taken, since another machine may compute other last bits. What may not stand for its image leaves that as
    it is; the model is asked about the whole batch as it will be kept, until it is wrong about every rounded one.
    """
    natural = _shown(pixels)
    levels, best = pixels.clone(), torch.full((len(images),), -torch.inf, device=images.device)
    for proposed in _roundings(images, natural, threat):
        seen = _shown(proposed)
        score = torch.where(holds(threat, seen, natural), _error(model, seen, labels), -torch.inf)
        better = score > best
        levels[better], best[better] = proposed[better], score[better]
    stands = best > -torch.inf
    while bool(stands.any()):
        mixed = torch.where(stands[:, None, None, None], _shown(levels), images)
        right = stands & (predict(model, mixed) == labels)
        if not bool(right.any()):
            break
        stands &= ~right
    return levels, stands


def _shown(levels: torch.Tensor) -> torch.Tensor:
    """The images as `verify` will see them: divided on the CPU, since a GPU's quotients differ in the last bit."""
    return unit(levels.cpu()).to(levels.device)


def _roundings(images: torch.Tensor, natural: torch.Tensor, threat: ThreatModel) -> Iterator[torch.Tensor]:
    """Ways to round, uint8: to the nearest level, and away from the natural image; in L2 also of a smaller change."""
    start = natural.mul(255).round()
    most = reach(threat) if threat.norm == "linf" else LEVELS
    for shrink in SHRINKS if threat.norm == "l2" else (1.0,):
        nearest = (natural + shrink * (images - natural)).mul(255).round()
        yield torch.minimum(torch.maximum(nearest, start - most), start + most).clamp(0, 255).to(torch.uint8)
    yield rounded_onwards(images, natural, threat).mul(255).round().to(torch.uint8)


def _error(model: Model, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """By how much the strongest other class leads, (K,); minus infinity where the model is right.

    A GPU may drop bits in convolutions that a stranger's machine keeps: there the model is asked again with all of
    them, and the smaller lead counts.
    """
    lead, wrong = _lead(model, images, labels)
    if images.is_cuda:
        with all_bits():
            lead = torch.minimum(lead, _lead(model, images, labels)[0])
    return torch.where(wrong, lead, -torch.inf)


def _lead(model: Model, images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The lead of the strongest other class over the label, and whether the model is wrong; both (K,)."""
    logits = in_full(model(images))
    own = logits.gather(1, labels[:, None])[:, 0]
    lead = logits.scatter(1, labels[:, None], -torch.inf).amax(dim=1) - own
    return lead.float(), (logits.argmax(dim=1) != labels) & logits.amax(dim=1).isfinite()


@contextmanager
def all_bits() -> Iterator[None]:
    """Inside, products on a GPU use whole float32 numbers; what was set before is set again on leaving."""
    kinds: tuple[Any, ...] = (torch.backends.cudnn, torch.backends.cuda.matmul)
    before = [kind.allow_tf32 for kind in kinds]
    try:
        for kind in kinds:
            kind.allow_tf32 = False
        yield
    finally:
        for kind, allowed in zip(kinds, before, strict=True):
            kind.allow_tf32 = allowed
