"""PGD with gradients averaged over noisy copies of each image."""

from dataclasses import dataclass

import torch

from linocut.attacks import losses
from linocut.attacks.dice import Dice
from linocut.attacks.gradients import Probe, Reading, look, read
from linocut.attacks.hooks import Model
from linocut.attacks.pgd import PGD
from linocut.attacks.pursuit import Pursuit
from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError


@dataclass(frozen=True, kw_only=True)
class NoiseAveragedPGD(PGD):
    """PGD whose gradient is the mean over `copies` points with normal noise of `sigma`.

    A discretising transform is piecewise constant: the gradient at one point says little about the next
    piece, the mean over a neighbourhood does. The loss is that of the point itself.
    """

    name: str = "pgd-noise-averaged"
    num_steps: int = 50
    copies: int = 8
    sigma: float = 5 / 255

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.copies < 1 or self.sigma < 0:
            raise InputError(f"copies at least 1 and sigma at least 0, got {self.copies!r} and {self.sigma!r}")

    def probe(self, model: Model, images: torch.Tensor, threat: ThreatModel, dice: Dice) -> Probe:
        """The loss here, the gradient from around here."""
        loss_of = losses.by_name(self.loss)

        def averaged(points: torch.Tensor, pursuit: Pursuit, step: int) -> Reading:
            loss, prediction = look(model, points, pursuit.labels, loss_of)
            own, shape = dice.select(pursuit.rows), tuple(points.shape[1:])
            total = torch.zeros_like(points)
            for copy in range(self.copies):
                noise = own.normal(step, shape, stream=16 + copy)
                noisy = torch.add(points, noise, alpha=self.sigma).clamp_(0, 1)
                total += read(model, noisy, pursuit.labels, loss_of).gradient
            return Reading(loss, prediction, total / self.copies, queries=1 + self.copies)

        return averaged
