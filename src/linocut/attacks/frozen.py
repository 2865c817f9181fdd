"""PGD on the model that paints with the palettes of the natural images."""

from dataclasses import dataclass

import torch

from linocut.attacks import losses
from linocut.attacks.dice import Dice
from linocut.attacks.gradients import Probe, Reading, look, read
from linocut.attacks.hooks import Model, hook
from linocut.attacks.losses import Loss
from linocut.attacks.pgd import PGD
from linocut.attacks.pursuit import Pursuit
from linocut.attacks.threat import ThreatModel


@dataclass(frozen=True, kw_only=True)
class FrozenPalettePGD(PGD):
    """Gradients where the palette holds still; losses and predictions from the true model.

    A palette that jumps with every step makes the true loss a rough surface; with it frozen the climb is
    smoother, and what it finds is judged with the palette moving.
    """

    name: str = "pgd-frozen"

    def probe(self, model: Model, images: torch.Tensor, threat: ThreatModel, dice: Dice) -> Probe:
        """A guide with frozen palettes beside the true model."""
        hook(model, "frozen")
        return _Frozen(model, losses.by_name(self.loss))


class _Frozen:
    """Asks for a new guide whenever examples have left, for its palettes are tied to the rows."""

    def __init__(self, model: Model, loss: Loss) -> None:
        self.model, self.loss = model, loss
        self.rows: torch.Tensor | None = None
        self.guide: Model = model

    def __call__(self, points: torch.Tensor, pursuit: Pursuit, step: int) -> Reading:
        if self.rows is not pursuit.rows:
            self.guide, self.rows = hook(self.model, "frozen")(pursuit.natural), pursuit.rows
        loss, prediction = look(self.model, points, pursuit.labels, self.loss)
        gradient = read(self.guide, points, pursuit.labels, self.loss, whole=True).gradient
        return Reading(loss, prediction, gradient, queries=2)
