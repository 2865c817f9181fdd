"""Projected gradient ascent that returns the best iterate."""

import math
from dataclasses import dataclass

import torch

from linocut.attacks import losses
from linocut.attacks.attack import Result, require_batch
from linocut.attacks.dice import Dice
from linocut.attacks.gradients import Direct, Probe, look
from linocut.attacks.hooks import Model, judge_of
from linocut.attacks.pursuit import Pursuit
from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError


@dataclass(frozen=True, kw_only=True)
class PGD:
    """Sign steps (L-inf) or normalised steps (L2), each projected into ball and box.

    `step_size` is absolute; where it is None, a step is `path_ratio` * eps / num_steps, so that the whole
    path is path_ratio times the radius. `random_start` None means uniform for L-inf and none for L2.
    Variants of this attack differ in `probe`, where the loss and the gradient come from, and in `shown`.
    Paper: section 5, PGD with BPDA.
    """

    name: str = "pgd"
    num_steps: int = 40
    step_size: float | None = None
    path_ratio: float = 2.5
    loss: str = "cross_entropy"
    random_start: bool | None = None
    any_iterate: bool = False

    def __post_init__(self) -> None:
        losses.by_name(self.loss)
        if self.num_steps < 1:
            raise InputError(f"num_steps must be at least 1, got {self.num_steps!r}")
        size = self.path_ratio if self.step_size is None else self.step_size
        if not (math.isfinite(size) and size > 0):
            raise InputError(f"a step must be finite and longer than 0, got {size!r}")

    def step_for(self, threat: ThreatModel) -> float:
        """How long one step is in this threat model."""
        return self.path_ratio * threat.eps / self.num_steps if self.step_size is None else self.step_size

    def probe(self, model: Model, images: torch.Tensor, threat: ThreatModel, dice: Dice) -> Probe:
        """Where the loss and the gradient come from."""
        return Direct(model, losses.by_name(self.loss))

    def start(self, images: torch.Tensor, threat: ThreatModel, dice: Dice, starts: torch.Tensor | None) -> torch.Tensor:
        """The first iterate: the given one, a random one or the image itself."""
        if starts is not None:
            return threat.project(starts, images)
        drawn = threat.norm == "linf" if self.random_start is None else self.random_start
        return threat.random_start(images, dice) if drawn else threat.project(images, images)

    def shown(self, points: torch.Tensor, natural: torch.Tensor, threat: ThreatModel) -> torch.Tensor:
        """What the model is asked about, and what is kept: the iterates themselves."""
        return points

    def run(
        self,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        dice: Dice,
        starts: torch.Tensor | None = None,
    ) -> Result:
        """The iterate of highest loss of each example, start included; num_steps gradients, one pass more."""
        require_batch(images, labels)
        probe, size = self.probe(model, images, threat, dice), self.step_for(threat)
        pursuit = Pursuit(
            images, labels, any_iterate=self.any_iterate, judge=judge_of(model), num_looks=self.num_steps + 1
        )
        points = self.start(images, threat, dice, starts)
        for step in range(self.num_steps):
            if len(pursuit) == 0:
                break
            shown = self.shown(points, pursuit.natural, threat)
            reading = probe(shown, pursuit, step)
            pursuit.see(shown, reading.loss, reading.prediction, queries=reading.queries, steps=1)
            points, gradient = pursuit.stay(points, reading.gradient)
            points = threat.step(points, gradient, size, pursuit.natural)
        if len(pursuit):
            shown = self.shown(points, pursuit.natural, threat)
            pursuit.see(shown, *look(model, shown, pursuit.labels, losses.by_name(self.loss)))
        return pursuit.result()
