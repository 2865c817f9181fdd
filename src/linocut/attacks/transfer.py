"""Points found on another model, judged on this one."""

from dataclasses import dataclass

import torch

from linocut.attacks import losses
from linocut.attacks.attack import Attack, Result, merged
from linocut.attacks.dice import Dice
from linocut.attacks.gradients import Guided, Probe
from linocut.attacks.hooks import Model, hook
from linocut.attacks.pgd import PGD
from linocut.attacks.threat import ThreatModel


@dataclass(frozen=True, kw_only=True)
class TransferPGD(PGD):
    """PGD that climbs the loss of `source` and keeps the iterate that is worst for the model attacked.

    Where `source` is None, the model is asked for its network without the transform.
    """

    name: str = "transfer"
    source: Model | None = None

    def probe(self, model: Model, images: torch.Tensor, threat: ThreatModel, dice: Dice) -> Probe:
        """The source as guide beside the model attacked."""
        source = hook(model, "undefended")() if self.source is None else self.source
        return Guided(model, source, losses.by_name(self.loss))


@dataclass(frozen=True, kw_only=True)
class Continued:
    """One attack started from the points of another, on the examples that the first left standing."""

    first: Attack
    second: Attack

    @property
    def name(self) -> str:
        """Both names, in order."""
        return f"{self.first.name}+{self.second.name}"

    def run(
        self,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        dice: Dice,
        starts: torch.Tensor | None = None,
    ) -> Result:
        """The better of both points of each example."""
        result = self.first.run(model, images, labels, threat, dice, starts)
        rows = (~result.broken).nonzero().squeeze(1)
        if len(rows) == 0:
            return result
        found = self.second.run(
            model, images[rows], labels[rows], threat, dice.select(rows), starts=result.images[rows]
        )
        return merged(result, found, rows)
