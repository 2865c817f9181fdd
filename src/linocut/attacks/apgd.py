"""APGD: projected gradient ascent with momentum that halves its step when the loss stops rising."""

from dataclasses import dataclass

import torch

from linocut.attacks import losses
from linocut.attacks.attack import Result, merged, require_batch
from linocut.attacks.dice import Dice
from linocut.attacks.gradients import logits_of, look, read
from linocut.attacks.hooks import Model, judge_of
from linocut.attacks.losses import Loss
from linocut.attacks.pursuit import Pursuit
from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError


@dataclass(frozen=True, kw_only=True)
class APGD:
    """Each example has its own step, 2 eps at first.

    At checkpoints (after 0.22 of the steps, then gaps shrinking by 0.03 to 0.06) a step is halved, and the
    example goes back to its best point, if less than `rho` of the steps since raised its loss, or if
    neither step nor best loss has changed since the last checkpoint.
    """

    name: str = "apgd-ce"
    num_steps: int = 100
    loss: str = "cross_entropy"
    rho: float = 0.75
    momentum: float = 0.75
    any_iterate: bool = True

    def __post_init__(self) -> None:
        losses.by_name(self.loss)
        if self.num_steps < 1:
            raise InputError(f"num_steps must be at least 1, got {self.num_steps!r}")

    def run(
        self,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        dice: Dice,
        starts: torch.Tensor | None = None,
    ) -> Result:
        """The point of highest loss of each example; num_steps gradients, one forward pass more."""
        require_batch(images, labels)
        start = threat.random_start(images, dice) if starts is None else threat.project(starts, images)
        return self.climb(model, images, labels, threat, start, losses.by_name(self.loss), labels)

    def climb(
        self,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        start: torch.Tensor,
        loss: Loss,
        aims: torch.Tensor,
    ) -> Result:
        """The result of climbing loss(logits, aims) from this start; aims are labels, or more, row by row."""
        pursuit = Pursuit(
            images, labels, any_iterate=self.any_iterate, judge=judge_of(model), num_looks=self.num_steps + 1
        )
        if len(pursuit) == 0:
            return pursuit.result()
        reading = read(model, start, aims, loss)
        pursuit.see(start, reading.loss, reading.prediction, steps=1)
        pace = _Pace(self, reading.loss, threat.eps)
        points, before, gradient, best_gradient = start, start, reading.gradient, reading.gradient
        for step in range(1, self.num_steps + 1):
            kept = pursuit.stay(points, before, gradient, best_gradient, aims, *pace.state())
            points, before, gradient, best_gradient, aims, *state = kept
            pace.restore(*state)
            if len(pursuit) == 0:
                break
            share = self.momentum if step > 1 else 1.0
            points, before = (
                _onward(points, before, gradient, pace.size, share, threat, pursuit.natural),
                points,
            )
            if step == self.num_steps:
                pursuit.see(points, *look(model, points, aims, loss))
                break
            reading = read(model, points, aims, loss)
            better = pursuit.see(points, reading.loss, reading.prediction, steps=1)
            gradient = reading.gradient
            best_gradient = _chosen(better, gradient, best_gradient)
            back = pace.judge(reading.loss, pursuit.loss_best)
            if back is not None:
                points, gradient = _chosen(back, pursuit.best, points), _chosen(back, best_gradient, gradient)
        return pursuit.result()


class _Pace:
    """The step size of each example, and what the next checkpoint needs to know."""

    def __init__(self, settings: APGD, loss: torch.Tensor, eps: float) -> None:
        self.rho, steps = settings.rho, settings.num_steps
        self.gap, self.shrink, self.least = (max(int(part * steps), 1) for part in (0.22, 0.03, 0.06))
        self.since = 0
        self.size = torch.full((len(loss), 1, 1, 1), 2 * eps, device=loss.device)
        self.rises = torch.zeros_like(loss)
        self.last_loss = self.best_at_check = loss
        self.halved = torch.ones_like(loss, dtype=torch.bool)

    def state(self) -> tuple[torch.Tensor, ...]:
        """What has a row for each example."""
        return self.size, self.rises, self.last_loss, self.best_at_check, self.halved

    def restore(self, *state: torch.Tensor) -> None:
        """Take back the rows that stayed."""
        self.size, self.rises, self.last_loss, self.best_at_check, self.halved = state

    def judge(self, loss: torch.Tensor, loss_best: torch.Tensor) -> torch.Tensor | None:
        """Which examples go back to their best point at half the step; None between checkpoints."""
        self.rises = self.rises + (loss > self.last_loss)
        self.last_loss = loss
        self.since += 1
        if self.since < self.gap:
            return None
        stuck = ~self.halved & (self.best_at_check >= loss_best)
        self.halved = (self.rises <= self.rho * self.gap) | stuck
        self.size = torch.where(self.halved[:, None, None, None], self.size / 2, self.size)
        self.best_at_check, self.rises = loss_best, torch.zeros_like(loss)
        self.since, self.gap = 0, max(self.gap - self.shrink, self.least)
        return self.halved


def _chosen(mask: torch.Tensor, yes: torch.Tensor, no: torch.Tensor) -> torch.Tensor:
    return torch.where(mask[:, None, None, None], yes, no)


def _onward(
    points: torch.Tensor,
    before: torch.Tensor,
    gradient: torch.Tensor,
    size: torch.Tensor,
    share: float,
    threat: ThreatModel,
    natural: torch.Tensor,
) -> torch.Tensor:
    """The next iterate: `share` of a projected gradient step, the rest from the step before."""
    ahead = threat.project(torch.addcmul(points, size, threat.steepest(gradient)), natural)
    mixed = points + share * (ahead - points) + (1 - share) * (points - before)
    return threat.project(mixed, natural)


@dataclass(frozen=True, kw_only=True)
class TargetedAPGD:
    """APGD with the targeted DLR loss towards each of the likeliest wrong classes in turn."""

    name: str = "apgd-t"
    num_steps: int = 100
    num_targets: int = 9
    any_iterate: bool = True

    def run(
        self,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        dice: Dice,
        starts: torch.Tensor | None = None,
    ) -> Result:
        """The best point over all targets; in the worst case mode only survivors meet the next target."""
        require_batch(images, labels)
        inner = APGD(name=self.name, num_steps=self.num_steps, any_iterate=self.any_iterate)
        if len(images) == 0:
            return inner.run(model, images, labels, threat, dice)
        others = logits_of(model, images).scatter(1, labels[:, None], float("-inf"))
        targets = others.topk(min(self.num_targets, others.shape[1] - 1), dim=1).indices
        rows = torch.arange(len(images), device=images.device)
        result: Result | None = None
        for rank in range(targets.shape[1]):
            if starts is None:
                start = threat.random_start(images[rows], dice.select(rows), step=rank)
            else:
                start = threat.project(starts[rows], images[rows])
            aims = torch.stack([labels[rows], targets[rows, rank]], dim=1)
            found = inner.climb(model, images[rows], labels[rows], threat, start, _towards, aims)
            result = found if result is None else merged(result, found, rows)
            if self.any_iterate:
                rows = (~result.broken).nonzero().squeeze(1)
        assert result is not None
        return result._replace(queries=result.queries + 1)


def _towards(logits: torch.Tensor, aims: torch.Tensor) -> torch.Tensor:
    """The targeted DLR loss, with label and target side by side in `aims` (B,2)."""
    return losses.targeted_dlr(logits, aims[:, 0], aims[:, 1])
