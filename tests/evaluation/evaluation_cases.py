"""Small models and pictures whose right answers are known, shared by the tests of this folder."""

import hashlib

import torch
from torch import nn

import linocut
from linocut.attacks.pgd import PGD
from linocut.attacks.threat import ThreatModel
from linocut.data.dataset import Images
from linocut.evaluation.case import Case
from linocut.evaluation.entry import Entry


class Linear(nn.Module):
    """Two classes, logits -+ w.(x - 1/2): whether eps breaks an image is known in closed form."""

    def __init__(self, weight: torch.Tensor, scale: float = 1.0):
        super().__init__()
        self.register_buffer("weight", weight)
        self.scale = scale

    def extra_repr(self) -> str:
        return f"scale={self.scale}"

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        score = ((images - 0.5) * self.weight).flatten(1).sum(dim=1) * self.scale
        return torch.stack([-score, score], dim=1)


def pictures(count: int = 60, side: int = 6, seed: int = 0) -> Images:
    """Random pictures far from the edges of the box, labelled by the linear model below."""
    dice = torch.Generator().manual_seed(seed)
    pixels = torch.randint(96, 160, (count, 1, side, side), generator=dice, dtype=torch.uint8)
    labels = Linear(direction(side))(pixels.float() / 255).argmax(dim=1)
    digest = hashlib.sha256(pixels.numpy().tobytes() + labels.numpy().tobytes()).hexdigest()
    return Images(pixels=pixels, labels=labels, classes=("a", "b"), name="pictures", split="test", sha256=digest)


def direction(side: int = 6) -> torch.Tensor:
    """A weight with different entries of both signs."""
    return torch.randn(1, side, side, generator=torch.Generator().manual_seed(7))


def case_of(model, images: Images | None = None, **more) -> Case:
    return Case(
        model=model,
        images=images if images is not None else pictures(),
        device=torch.device("cpu"),
        **({"searcher": model, "raw": model} | more),
    )


CLEAN = Entry(name="clean", attack=None, column="clean")


def line(attack, threat: ThreatModel, column: str = "worst", kind: str = "gradient", **more) -> Entry:
    return Entry(name=f"{threat.norm}/{attack.name}", attack=attack, threat=threat, column=column, kind=kind, **more)


LINF = ThreatModel("linf", 0.012)
L2 = ThreatModel("l2", 0.072)
SMALL_PLAN = [
    CLEAN,
    line(PGD(name="pgd-published", num_steps=4), LINF, "published"),
    line(PGD(name="pgd-margin", num_steps=5, loss="margin", any_iterate=True), LINF),
    line(PGD(name="pgd-published", num_steps=4), L2, "published"),
    line(PGD(name="pgd-margin", num_steps=5, loss="margin", any_iterate=True), L2),
]
RADII = {"linf": LINF.eps, "l2": L2.eps}
GIVEN = pictures(40)
IMAGES, LABELS = GIVEN.unit(), GIVEN.labels
MODEL = Linear(direction())


def verdict_of(out, model=MODEL, images=IMAGES, labels=LABELS, **more):
    """The verdict from Python on these pictures, with few attacks unless told otherwise."""
    asked = {"eps": 0.02, "norm": "linf", "suite": "apgd-ce", "progress": False} | more
    return linocut.evaluate(model, images, labels, out=out, **asked)
