"""Adversarial images of another ball, tried in this one."""

from dataclasses import dataclass

import torch

from linocut.attacks import losses
from linocut.attacks.attack import Result
from linocut.attacks.dice import Dice
from linocut.attacks.gradients import look
from linocut.attacks.hooks import Model
from linocut.attacks.threat import ThreatModel
from linocut.evaluation.balls import holds


@dataclass(frozen=True, kw_only=True)
class Reuse:
    """The given starts, brought into the ball where they lie outside it; one query each."""

    name: str = "reuse-linf"

    def run(
        self,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        dice: Dice,
        starts: torch.Tensor | None = None,
    ) -> Result:
        """The starts and what the model says of them."""
        assert starts is not None
        # A start inside is tried as it is: projecting could move its last bits, and a discretiser amplifies them.
        inside = holds(threat, starts, images)[:, None, None, None]
        points = torch.where(inside, starts, threat.project(starts, images))
        loss, prediction = look(model, points, labels, losses.margin)
        broken, ones = prediction != labels, torch.ones_like(labels, dtype=torch.int32)
        return Result(
            images=points,
            broken=broken,
            prediction=prediction,
            loss_start=loss,
            loss_best=loss,
            loss_end=loss,
            steps=torch.zeros_like(ones),
            queries=ones,
            trace=None,
            silent=torch.zeros_like(broken),
        )
