"""PGD and Square among the images that a PNG can hold."""

from dataclasses import dataclass

import torch

from linocut.attacks.pgd import PGD
from linocut.attacks.square import Square
from linocut.attacks.threat import ThreatModel

LEVELS = 255
SHRINKS = (1.0, 0.998, 0.995, 0.99, 0.98)  # of an L2 move, where rounding would take it out of the ball


def reach(threat: ThreatModel) -> int:
    """How many whole levels a value may move in an L-inf ball."""
    return int(LEVELS * threat.eps + 1e-6)


def in_whole_levels(points: torch.Tensor, natural: torch.Tensor, threat: ThreatModel) -> torch.Tensor:
    """The points in whole levels and in the ball, (B,C,H,W); the natural images are in whole levels themselves.

    An L2 move of less than half a level a value rounds to nothing.
    """
    start = natural.double().mul(LEVELS).round_()
    moved = points.double().mul(LEVELS).sub_(start)
    if threat.norm == "linf":
        most = reach(threat)
        return ((start + moved.round_().clamp_(-most, most)).clamp_(0, LEVELS) / LEVELS).to(points.dtype)
    levels, missing = start + moved.trunc(), torch.ones(len(points), dtype=torch.bool, device=points.device)
    for shrink in SHRINKS:
        tried = (start + (moved * shrink).round_()).clamp_(0, LEVELS)
        length = torch.linalg.vector_norm((tried - start).flatten(1), dim=1)
        found = missing & (length <= LEVELS * threat.eps)
        levels = torch.where(found[:, None, None, None], tried, levels)
        missing &= ~found
    return (levels.clamp_(0, LEVELS) / LEVELS).to(points.dtype)


@dataclass(frozen=True, kw_only=True)
class WholeLevelPGD(PGD):
    """PGD that climbs between the levels and is judged on them: the nearest image in whole levels decides.

    A point that lies barely across a boundary is lost when it is rounded; that it was found between two levels does
    not say that there is none on them. A step is at least two levels in L-inf, so that it shows.
    """

    name: str = "pgd-whole-levels"
    num_steps: int = 100
    path_ratio: float = 5.0
    loss: str = "margin"
    any_iterate: bool = True

    def step_for(self, threat: ThreatModel) -> float:
        """How long one step is in this threat model."""
        step = super().step_for(threat)
        return max(step, 2 / LEVELS) if threat.norm == "linf" else step

    def shown(self, points: torch.Tensor, natural: torch.Tensor, threat: ThreatModel) -> torch.Tensor:
        """The points in whole levels."""
        return in_whole_levels(points, natural, threat)


@dataclass(frozen=True, kw_only=True)
class WholeLevelSquare(Square):
    """Square that moves from one image in whole levels to another.

    Where a network's gradients mislead, random windows find what PGD does not, on the levels as between them.
    """

    name: str = "square-whole-levels"

    def shown(self, points: torch.Tensor, natural: torch.Tensor, threat: ThreatModel) -> torch.Tensor:
        """The points in whole levels."""
        return in_whole_levels(points, natural, threat)
