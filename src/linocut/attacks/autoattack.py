"""AutoAttack as its authors or pyautoattack ship it, one of its four parts at a time."""

import contextlib
import importlib
import inspect
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal

import torch

from linocut.attacks import losses
from linocut.attacks.attack import Result
from linocut.attacks.dice import Dice
from linocut.attacks.gradients import look
from linocut.attacks.hooks import Model, NotApplicable
from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError

Part = Literal["apgd-ce", "apgd-t", "fab-t", "square"]
PARTS: tuple[Part, ...] = ("apgd-ce", "apgd-t", "fab-t", "square")
PACKAGES = ("pyautoattack", "autoattack")
LEAST_CLASSES = {"apgd-ce": 2, "apgd-t": 4, "fab-t": 2, "square": 2}  # its targeted loss compares four logits


@dataclass(frozen=True, kw_only=True)
class AutoAttack:
    """One part of AutoAttack's standard version. `library` says which package, and which version of it.

    Its randomness is the batch's, not the example's: it is seeded with the first example's die.
    """

    name: str
    part: Part
    library: str

    def run(
        self,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        dice: Dice,
        starts: torch.Tensor | None = None,
    ) -> Result:
        """What AutoAttack returns, looked at once more; an example it does not break comes back as it was.

        `queries` and `steps` count the model's calls, and those of them with a gradient, for the whole batch.
        """
        before, first = look(model, images, labels, losses.margin)
        points, counter = images, _Counted(model)
        if bool((first == labels).any()) and threat.eps > 0:
            with torch.random.fork_rng(devices=[images.device] if images.device.type == "cuda" else []):
                points = self._attack(counter, images, labels, threat, int(dice.seeds[0]) % 2**31)
        inside = threat.contains(points.double(), images.double(), slack=1e-6)[:, None, None, None]
        points = torch.where(inside, points, threat.project(points, images))
        loss, prediction = look(model, points, labels, losses.margin)
        every = torch.ones_like(labels, dtype=torch.int32)
        return Result(
            images=points,
            broken=prediction != labels,
            prediction=prediction,
            loss_start=before,
            loss_best=loss,
            loss_end=loss,
            steps=every * counter.with_gradient,
            queries=every * (counter.calls + 2),
            trace=None,
            silent=torch.zeros_like(labels, dtype=torch.bool),
        )

    def _attack(
        self, model: "_Counted", images: torch.Tensor, labels: torch.Tensor, threat: ThreatModel, seed: int
    ) -> torch.Tensor:
        with torch.no_grad():
            classes = model(images[:1]).shape[1]
        if classes < LEAST_CLASSES[self.part]:
            raise NotApplicable(f"{self.part} needs {LEAST_CLASSES[self.part]} classes, the model has {classes}")
        make = _package().AutoAttack
        settings: dict[str, Any] = {"norm": {"linf": "Linf", "l2": "L2"}[threat.norm], "eps": threat.eps, "seed": seed}
        if "verbose" in inspect.signature(make).parameters:  # the authors' version prints
            settings["verbose"] = False
        suite = make(model, version="standard", device=images.device, **settings)
        suite.verbose, suite.attacks_to_run = False, [self.part]
        suite.apgd_targeted.n_target_classes = min(9, classes - 1)
        suite.fab.n_target_classes = min(9, classes - 1)
        evaluate = suite.run_standard_evaluation
        size = "batch_size" if "batch_size" in inspect.signature(evaluate).parameters else "bs"
        with contextlib.redirect_stdout(sys.stderr):  # its warnings: standard output belongs to the caller
            found = evaluate(images, labels, **{size: len(images)})
        return (found[0] if isinstance(found, tuple) else found).detach()


class _Counted:
    """The model, and how often it was called."""

    def __init__(self, model: Model) -> None:
        self.model, self.calls, self.with_gradient = model, 0, 0

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.with_gradient += torch.is_grad_enabled() and images.requires_grad
        return self.model(images)


def standard() -> list[AutoAttack]:
    """The four parts in AutoAttack's order; each is to see only what the ones before it left standing."""
    package = _package().__name__
    try:
        library = f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        library = package
    return [AutoAttack(name=f"autoattack-{part}", part=part, library=library) for part in PARTS]


def _package() -> Any:
    for name in PACKAGES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise InputError("AutoAttack is not installed: pip install 'linocut[autoattack]', or the authors' version from git")
