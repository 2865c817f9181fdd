"""PGD through another backward rule of the model's transform."""

from dataclasses import dataclass

import torch

from linocut.attacks import losses
from linocut.attacks.dice import Dice
from linocut.attacks.gradients import Direct, Probe
from linocut.attacks.hooks import Model, hook
from linocut.attacks.pgd import PGD
from linocut.attacks.threat import ThreatModel


@dataclass(frozen=True, kw_only=True)
class SurrogatePGD(PGD):
    """PGD with `surrogate` in place of the model's own rule: "identity" or "soft"; "none" shows masking.

    The forward pass stays the true one, so one pass still gives loss and gradient.
    Paper: supplement, alternative adaptive attacks, the third ("soft").
    """

    name: str = "pgd-soft"
    surrogate: str = "soft"

    def probe(self, model: Model, images: torch.Tensor, threat: ThreatModel, dice: Dice) -> Probe:
        """The same model with the other rule."""
        return Direct(hook(model, "with_surrogate")(self.surrogate), losses.by_name(self.loss))
