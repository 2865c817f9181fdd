"""The ball an attacker may move in: a radius that knows its norm, cut by the box [0, 1] of images."""

import math
from dataclasses import dataclass
from typing import Literal

import torch

from linocut.attacks.dice import Dice
from linocut.errors import InputError

# Each round of the L2 projection finds more of the pixels that the box stops. Two or three find all of
# them in images; the result lies inside the ball after any number.
_PROJECTION_ROUNDS = 8


@dataclass(frozen=True)
class ThreatModel:
    """All images within `eps` of the natural one in this norm, with values in [0, 1]."""

    norm: Literal["linf", "l2"]
    eps: float

    def __post_init__(self) -> None:
        if self.norm not in ("linf", "l2"):
            raise InputError(f"norm must be 'linf' or 'l2', got {self.norm!r}")
        if not (math.isfinite(self.eps) and self.eps >= 0):
            raise InputError(f"eps must be finite and not negative, got {self.eps!r}")
        if self.norm == "linf" and self.eps > 1:
            raise InputError(f"an L-inf eps is on the unit range and at most 1, got {self.eps!r}: divide by 255?")

    def project(self, points: torch.Tensor, natural: torch.Tensor) -> torch.Tensor:
        """The nearest points (Euclidean) that are allowed, (B,C,H,W)."""
        if self.norm == "linf":
            return (points - natural).clamp_(-self.eps, self.eps).add_(natural).clamp_(0, 1)
        return _project_l2(points, natural, self.eps)

    def step(self, points: torch.Tensor, gradient: torch.Tensor, size: float, natural: torch.Tensor) -> torch.Tensor:
        """The allowed points nearest to one step of this size up the gradient; `gradient` is used up.

        It runs between any two passes of a model, so it makes as few new tensors as it can.
        """
        if self.norm == "linf":
            moved = (points - natural).add_(gradient.sign_(), alpha=size)
            return moved.clamp_(-self.eps, self.eps).add_(natural).clamp_(0, 1)
        return self.project(torch.add(points, self.steepest(gradient), alpha=size), natural)

    def steepest(self, gradient: torch.Tensor) -> torch.Tensor:
        """The unit step that raises a linear loss most: signs, or the gradient over its L2 norm.

        Dividing by the largest entry first keeps gradients of 1e-30 from vanishing when squared.
        A gradient of zero stays zero.
        """
        if self.norm == "linf":
            return gradient.sign()
        flat = gradient.flatten(1)
        flat = flat / flat.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(flat.dtype).tiny)
        return (flat / flat.norm(dim=1, keepdim=True).clamp_min(0.5)).view_as(gradient)

    def random_start(self, natural: torch.Tensor, dice: Dice, step: int = 0) -> torch.Tensor:
        """Points drawn uniformly from the ball and then brought into the box, (B,C,H,W)."""
        shape = tuple(natural.shape[1:])
        if self.norm == "linf":
            offset = dice.uniform(step, shape, stream=1).mul_(2).sub_(1)
            return torch.add(natural, offset, alpha=self.eps).clamp_(0, 1)
        offset = self.steepest(dice.normal(step, shape, stream=1))
        radius = dice.uniform(step, (1, 1, 1), stream=2) ** (1 / math.prod(shape))
        return (natural + self.eps * radius * offset).clamp_(0, 1)

    def distance(self, points: torch.Tensor, natural: torch.Tensor) -> torch.Tensor:
        """How far each point is from its natural image in this norm, (B,)."""
        moved = (points - natural).flatten(1)
        if moved.shape[1] == 0:
            return moved.new_zeros(len(moved))
        return moved.abs().amax(dim=1) if self.norm == "linf" else moved.norm(dim=1)

    def contains(self, points: torch.Tensor, natural: torch.Tensor, slack: float = 1e-6) -> torch.Tensor:
        """Which points are allowed, bool (B,); NaN never is."""
        flat = points.flatten(1)
        in_box = ((flat >= -slack) & (flat <= 1 + slack)).all(dim=1)
        return in_box & (self.distance(points, natural) <= self.eps + slack)


def _project_l2(points: torch.Tensor, natural: torch.Tensor, eps: float) -> torch.Tensor:
    """The nearest point of ball and box together, which scaling and then clipping does not give.

    It is clip(natural + t (points - natural)) for the largest t <= 1 whose length is at most eps. With the
    set of pixels that the box stops known, t has a closed form; from "none" the set only grows, so t
    rises to its limit and every round stays inside the ball.
    """
    flat = natural.flatten(1)
    # Rounding to float32 moves each of n values by up to 2^-25, and in a plain picture all of them the same way.
    eps -= min(math.sqrt(flat.shape[1]) * 2.0**-24, 1e-5 * eps)
    moved = points.flatten(1) - flat
    tiny = torch.finfo(moved.dtype).tiny
    scale = (eps / _length(moved).clamp_min(tiny)).clamp_max(1)
    # Asking whether it has settled would make a GPU wait for the answer.
    asks = points.device.type == "cpu"
    for _ in range(0 if asks and bool((scale == 1).all()) else _PROJECTION_ROUNDS):
        wanted = torch.addcmul(flat, moved, scale)
        reached = wanted.clamp(0, 1)
        free = _length(torch.where(wanted == reached, moved, 0))
        length = _length(reached.sub_(flat))
        spent = (length.square() - (free * scale).square()).clamp_min_(0)  # by the pixels the box stops
        found = (eps**2 - spent).clamp_min_(0).sqrt_().div_(free.clamp_min_(tiny)).clamp_max_(1)
        before, scale = scale, torch.maximum(found, scale)
        # So small a change stops next to no further pixels: what is left is of its square.
        if asks and bool((scale <= before * (1 + 1e-3)).all()):
            break
    return torch.addcmul(flat, moved, scale).clamp_(0, 1).view_as(points)


def _length(rows: torch.Tensor) -> torch.Tensor:
    """The L2 norms of the rows, (B,1), summed in float64.

    In float32 a sum of thousands of squares, many of them alike, errs by some millionths of itself, as in plain
    pictures that go towards black as a whole: their projections would lie outside the ball by as much.
    """
    return torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64).to(rows.dtype)
