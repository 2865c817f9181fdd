"""The loop of Chen et al. (2019) against fixed codebooks."""

from dataclasses import dataclass

import torch

from linocut.attacks import losses
from linocut.attacks.attack import Result, require_batch
from linocut.attacks.dice import Dice
from linocut.attacks.gradients import look, read
from linocut.attacks.hooks import Model, hook, judge_of
from linocut.attacks.pursuit import Pursuit
from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError

_MEAN_DECAY, _SQUARE_DECAY, _TINY = 0.9, 0.999, 1e-8  # Adam's


@dataclass(frozen=True, kw_only=True)
class ChenLoop:
    """Signs of the margin's gradient fed to Adam, from max(x - eps, 0); the last iterate is returned.

    `surrogate` asks the model for that backward rule ("soft" is theirs); None keeps the model's own.
    """

    name: str = "chen"
    num_steps: int = 40
    step_size: float = 0.01
    surrogate: str | None = None
    any_iterate: bool = False

    def __post_init__(self) -> None:
        if self.num_steps < 1 or not self.step_size > 0:
            raise InputError(f"at least one step longer than 0, got {self.num_steps!r} steps of {self.step_size!r}")

    def run(
        self,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        dice: Dice,
        starts: torch.Tensor | None = None,
    ) -> Result:
        """The last iterate of each example, or in the worst case mode the first misclassified one."""
        require_batch(images, labels)
        guide = model if self.surrogate is None else hook(model, "with_surrogate")(self.surrogate)
        pursuit = Pursuit(
            images,
            labels,
            any_iterate=self.any_iterate,
            judge=judge_of(model),
            num_looks=self.num_steps + 1,
            keep_last=True,
        )
        points = threat.project((images - threat.eps).clamp_min(0) if starts is None else starts, images)
        mean, square = torch.zeros_like(points), torch.zeros_like(points)
        for step in range(1, self.num_steps + 1):
            if len(pursuit) == 0:
                break
            reading = read(guide, points, pursuit.labels, losses.margin)
            pursuit.see(points, reading.loss, reading.prediction, steps=1)
            points, sign, mean, square = pursuit.stay(points, reading.gradient.sign(), mean, square)
            mean = torch.lerp(sign, mean, _MEAN_DECAY)
            square = torch.lerp(sign.square(), square, _SQUARE_DECAY)
            slope = (square / (1 - _SQUARE_DECAY**step)).sqrt_().add_(_TINY)
            ahead = torch.addcdiv(points, mean, slope, value=self.step_size / (1 - _MEAN_DECAY**step))
            points = threat.project(ahead, pursuit.natural)
        if len(pursuit):
            pursuit.see(points, *look(model, points, pursuit.labels, losses.margin))
        return pursuit.result()
