"""Random draws from the ball: what needs no gradient and no search."""

from dataclasses import dataclass

import torch

from linocut.attacks import losses
from linocut.attacks.attack import Result, require_batch
from linocut.attacks.dice import Dice
from linocut.attacks.gradients import look
from linocut.attacks.hooks import Model, judge_of
from linocut.attacks.pursuit import Pursuit
from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError


@dataclass(frozen=True, kw_only=True)
class RandomNoise:
    """`draws` points, by turns uniform in the ball and as far out as it goes (corners, or the sphere)."""

    name: str = "random-noise"
    draws: int = 100
    loss: str = "margin"
    any_iterate: bool = True

    def __post_init__(self) -> None:
        losses.by_name(self.loss)
        if self.draws < 1:
            raise InputError(f"draws must be at least 1, got {self.draws!r}")

    def run(
        self,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        dice: Dice,
        starts: torch.Tensor | None = None,
    ) -> Result:
        """The draw of highest loss of each example; `starts`, where given, is the first draw."""
        require_batch(images, labels)
        pursuit = Pursuit(images, labels, any_iterate=self.any_iterate, judge=judge_of(model), num_looks=self.draws)
        for draw in range(self.draws):
            if len(pursuit) == 0:
                break
            if draw == 0 and starts is not None:
                points = threat.project(starts, images)
            else:
                points = _drawn(pursuit.natural, threat, dice.select(pursuit.rows), draw)
            pursuit.see(points, *look(model, points, pursuit.labels, losses.by_name(self.loss)))
            pursuit.stay()
        return pursuit.result()


def _drawn(natural: torch.Tensor, threat: ThreatModel, dice: Dice, draw: int) -> torch.Tensor:
    if draw % 2 == 0:
        return threat.random_start(natural, dice, step=draw)
    direction = dice.normal(draw, tuple(natural.shape[1:]))
    return torch.add(natural, threat.steepest(direction), alpha=threat.eps).clamp_(0, 1)
