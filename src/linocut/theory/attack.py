"""Attacks on a two-colour codebook and its network: real perturbations, in whole 1024ths of a level, exactly checked.

The adversary first chooses where the split will lie, then colours for the pixels that this leaves undecided. Colours
are found by gradient steps on a hidden value for each pixel, seen by the network as black or white; the perturbed image
is then built, discretised like any other, and only what the network says about that counts.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from linocut.theory.certificate import PARTS, Codebook
from linocut.theory.definitions import WHITE


class Attacked(NamedTuple):
    """Per image: whether a perturbation was found that changes the prediction, and the last one tried, in 1024ths."""

    broken: Tensor
    images: Tensor


def discretise(images: Tensor, codebook: Codebook) -> Tensor:
    """The black-and-white image (True is white) of images (N, 1, H, W) in whole 1024ths of a level."""
    if codebook == "adaptive":
        return 2 * images > images.amin((1, 2, 3), keepdim=True) + images.amax((1, 2, 3), keepdim=True)
    return 2 * images > (int(codebook[0]) + int(codebook[1])) * PARTS


def reach(images: Tensor, radius: int, codebook: Codebook, where: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Every pixel's lowest and highest value in 1024ths, and twice the split, when the split lies at `where` (0..1)."""
    x = images.long() * PARTS
    bottom, top = (x - radius).clamp_min(0), (x + radius).clamp_max(WHITE * PARTS)
    if codebook != "adaptive":
        return bottom, top, torch.full_like(x[:, :1, :1, :1], (int(codebook[0]) + int(codebook[1])) * PARTS)

    def between(values: Tensor) -> Tensor:  # the image's new minimum or maximum, chosen from all it may become
        least, most = values
        return least + (where.double().view(-1, 1, 1, 1) * (most - least)).long()

    lowest = between(torch.stack([v.amin((1, 2, 3), keepdim=True) for v in (bottom, top)]))
    highest = between(torch.stack([v.amax((1, 2, 3), keepdim=True) for v in (bottom, top)]))
    return torch.maximum(bottom, lowest), torch.minimum(top, highest), lowest + highest


def attack(
    network: nn.Sequential,
    images: Tensor,
    labels: Tensor,
    eps: float | Fraction,
    codebook: Codebook,
    dice: torch.Generator,
    *,
    restarts: int = 4,
    steps: int = 20,
) -> Attacked:
    """Tries to change the predictions within eps levels (rounded down to 1024ths); images as whole levels.

    The splits tried are both ends of its range, then random ones; an image that is broken leaves.
    """
    radius = math.floor(Fraction(eps) * PARTS)
    found = images.long() * PARTS
    with torch.no_grad():
        broken = network(discretise(found, codebook).float()).argmax(1) != labels
    for restart in range(restarts):
        left = (~broken).nonzero().squeeze(1)
        if not len(left):
            break
        where = torch.rand(len(left), generator=dice, device=images.device)
        where = torch.full_like(where, float(restart)) if restart < 2 else where
        bottom, top, double_split = reach(images[left], radius, codebook, where)
        lower, upper = (2 * v > double_split for v in (bottom, top))
        white = worst_colors(network, lower, upper, labels[left], steps, dice)
        perturbed = torch.where(white, top, bottom)
        with torch.no_grad():
            now = network(discretise(perturbed, codebook).float()).argmax(1) != labels[left]
        found[left], broken[left] = perturbed, now
    return Attacked(broken, found)


def worst_colors(
    network: nn.Sequential, lower: Tensor, upper: Tensor, labels: Tensor, steps: int, dice: torch.Generator
) -> Tensor:
    """The black-and-white images between lower and upper (booleans) with the smallest lead of the true class seen."""
    hidden = torch.rand(lower.shape, generator=dice, device=lower.device)
    best = lower.clone()
    least = torch.full((len(lower),), torch.inf, device=lower.device)
    for step in range(steps + 1):
        white = ((hidden > 0.5) & upper) | lower
        seen = white.float().requires_grad_()
        with torch.enable_grad():
            logits = network(seen)
            true = logits.gather(1, labels[:, None]).squeeze(1)
            rival = logits.masked_fill(F.one_hot(labels, logits.shape[1]).bool(), -torch.inf).amax(1)
            lead = true - rival
            (gradient,) = torch.autograd.grad(lead.sum(), seen)
        better = lead.detach() < least
        least, best = torch.where(better, lead.detach(), least), torch.where(better.view(-1, 1, 1, 1), white, best)
        hidden = (hidden - 0.5 * (1 - step / (steps + 1)) * gradient.sign()).clamp(0, 1)
    return best
