"""Natural, proven and attacked accuracy of one network at one radius, each image counted by the strongest means."""

import time
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor, nn

from linocut.theory.attack import attack
from linocut.theory.branching import prove
from linocut.theory.certificate import Codebook
from linocut.theory.definitions import WHITE


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
) -> Judgement:
    """How a folded network does on (N, 1, H, W) images of whole levels at radius eps.

    Every image is attacked, those proven as well: a proven image that breaks is an error in the certificate and
    stops the run. `at_once` images or boxes are held in memory together.
    """
    started = time.perf_counter()
    dice = torch.Generator(device=images.device).manual_seed(1)
    parts = zip(images.split(at_once), labels.split(at_once), strict=True)
    masks = [judge_part(network, x, y, eps, codebook, most_boxes, at_once, dice) for x, y in parts]
    shares = 100 * torch.cat(masks, dim=1).double().mean(1)
    natural, proven_by_intervals, proven, attacked = (round(share, 3) for share in shares.tolist())
    return Judgement(
        eps_levels=float(eps),
        n=len(images),
        natural=natural,
        proven_by_intervals=proven_by_intervals,
        proven=proven,
        attacked=attacked,
        seconds=round(time.perf_counter() - started, 1),
    )


def judge_part(
    network: nn.Sequential,
    images: Tensor,
    labels: Tensor,
    eps: float | Fraction,
    codebook: Codebook,
    most_boxes: int,
    at_once: int,
    dice: torch.Generator,
) -> Tensor:
    """(4, N) booleans: right by nature, proven by intervals, proven, never broken by the attack.

    Images between proven and broken get a longer attack and then the boxes to branch on pixels.
    """
    natural = ~attack(network, images, labels, 0, codebook, dice, restarts=0).broken
    broken = attack(network, images, labels, eps, codebook, dice, restarts=3, steps=15).broken
    no_limit = 2 * WHITE + 2  # an image has at most 256 windows
    plain = prove(network, images, labels, eps, codebook, most_boxes=no_limit, by_pixel=False, at_once=at_once).proven
    left = (~plain & ~broken).nonzero().squeeze(1)
    longer = attack(network, images[left], labels[left], eps, codebook, dice, restarts=16, steps=30).broken
    broken[left] = longer
    left = left[~longer]
    proven = plain.clone()
    proven[left] = prove(
        network, images[left], labels[left], eps, codebook, most_boxes=most_boxes, at_once=at_once
    ).proven
    assert not (proven & broken).any(), "a proven image was broken: the certificate is unsound"
    return torch.stack([natural, plain, proven, ~broken])
