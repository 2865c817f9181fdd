"""Natural, proven and attacked accuracy of one network at one radius, each image counted by the strongest means."""

import math
import time
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor, nn

from linocut.theory.attack import attack
from linocut.theory.branching import prove
from linocut.theory.certificate import Codebook


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Shares of n images in per cent; proven <= attacked always, and the truth lies between the two."""

    eps_levels: float
    n: int
    natural: float
    proven_by_intervals: float
    proven: float
    attacked: float
    seconds: float


def judge(
    network: nn.Sequential,
    images: Tensor,
    labels: Tensor,
    eps: float | Fraction,
    codebook: Codebook,
    *,
    most_boxes: int = 2000,
    at_once: int = 1024,
    seed: int = 1,
) -> Judgement:
    """How a folded network does on (N, 1, H, W) images of whole levels at radius eps.

    Every image is attacked, those proven as well: a proven image that breaks is an error in the certificate and
    stops the run. Images between proven and broken then get a longer attack and the boxes to branch on pixels.
    """
    started = time.perf_counter()
    dice = torch.Generator(device=images.device).manual_seed(seed)
    natural = ~attack(network, images, labels, 0, codebook, dice, restarts=0).broken
    broken = attack(network, images, labels, eps, codebook, dice, restarts=3, steps=15).broken
    only_windows = 2 * (2 * math.ceil(eps) + 2)  # enough boxes to reach single windows
    plain = prove(
        network,
        images,
        labels,
        eps,
        codebook,
        hopeless=broken,
        most_boxes=only_windows,
        by_pixel=False,
        at_once=at_once,
    ).proven
    left = (~plain & ~broken).nonzero().squeeze(1)
    longer = attack(network, images[left], labels[left], eps, codebook, dice, restarts=16, steps=30)
    broken[left] = longer.broken
    left = left[~longer.broken]
    proven = plain.clone()
    proven[left] = prove(
        network, images[left], labels[left], eps, codebook, most_boxes=most_boxes, at_once=at_once
    ).proven
    assert not (proven & broken).any(), "a proven image was broken: the certificate is unsound"

    def percent(mask: Tensor) -> float:
        return round(100 * mask.double().mean().item(), 3)

    return Judgement(
        eps_levels=float(eps),
        n=len(images),
        natural=percent(natural),
        proven_by_intervals=percent(plain),
        proven=percent(proven),
        attacked=percent(~broken),
        seconds=round(time.perf_counter() - started, 1),
    )
