"""The radii and the published attack of each data set, at any image size and radius."""

import math
from dataclasses import dataclass
from typing import Literal

import torch

from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError

Norm = Literal["linf", "l2"]


@dataclass(frozen=True, kw_only=True)
class Published:
    """What the paper attacks a data set with. L2 runs use the L-inf number of steps."""

    values: int  # channels times height times width, at the paper's size
    num_steps: int
    linf_eps: float
    linf_step: float
    l2_eps: float
    l2_step: float


_SMALL = Published(values=3 * 32 * 32, num_steps=40, linf_eps=0.031, linf_step=0.007, l2_eps=1.74, l2_step=0.05)
_MNIST = Published(values=28 * 28, num_steps=100, linf_eps=0.3, linf_step=0.01, l2_eps=8.4, l2_step=0.1)
PUBLISHED = {
    "mnist": _MNIST,
    "digits": _MNIST,  # not in the paper; of the same shape
    "fashion-mnist": Published(values=28 * 28, num_steps=100, linf_eps=0.1, linf_step=0.01, l2_eps=2.8, l2_step=0.5),
    "cifar-10": _SMALL,
    "gtsrb": _SMALL,
    "resisc45": Published(
        values=3 * 256 * 256, num_steps=40, linf_eps=0.031, linf_step=0.007, l2_eps=13.91, l2_step=0.35
    ),
    "imagenette": Published(
        values=3 * 224 * 224, num_steps=10, linf_eps=4 / 255, linf_step=1 / 255, l2_eps=6.09, l2_step=0.85
    ),
}


@dataclass(frozen=True, kw_only=True)
class Ball:
    """A threat model for images of so many values, and the published attack in it."""

    threat: ThreatModel
    values: int
    num_steps: int
    step_size: float


def balls(data: str, values: int, norms: tuple[Norm, ...], eps: float | None = None) -> dict[str, Ball]:
    """The ball of each norm, for images of so many values.

    Without eps it is the data set's own, L2 radius and step growing with the root of the number of values.
    With both norms eps is the L-inf radius and L2 gets the length of its corner; with one norm it is that one's.
    Steps keep their ratio to the radius. A data set the paper does not have takes CIFAR-10's ratios.
    """
    if data not in PUBLISHED and eps is None:
        raise InputError(f"no radius is known for {data!r}: give one, eps (known: {', '.join(PUBLISHED)})")
    if eps is not None and not 0 < eps < math.inf:
        raise InputError(f"eps is a radius above 0, got {eps}")
    paper = PUBLISHED.get(data, _SMALL)
    stretch = math.sqrt(values / paper.values)
    linf, l2 = paper.linf_eps, paper.l2_eps * stretch
    if eps is not None:
        linf, l2 = eps, (eps if norms == ("l2",) else eps * math.sqrt(values))
    steps = {"linf": paper.linf_step * (linf / paper.linf_eps), "l2": paper.l2_step * (l2 / paper.l2_eps)}
    radii = {"linf": linf, "l2": l2}
    return {
        norm: Ball(
            threat=ThreatModel(norm, radii[norm]), values=values, num_steps=paper.num_steps, step_size=steps[norm]
        )
        for norm in norms
    }


def holds(threat: ThreatModel, images: torch.Tensor, natural: torch.Tensor) -> torch.Tensor:
    """Which images lie in the ball and the box, bool (B,), up to a millionth of the radius (at least of 1).

    In float64, and with a slack that grows with the radius: at 8.4, one step of float32 is already 1e-6.
    """
    return threat.contains(images.double(), natural.double(), slack=1e-6 * max(1.0, threat.eps))
