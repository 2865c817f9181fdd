"""Ledgers for these tests: two that are really run on small pictures, and made-up ones whose figures are known."""

import hashlib
import json
from pathlib import Path

import torch
from torch import nn

from linocut.attacks.pgd import PGD
from linocut.attacks.threat import ThreatModel
from linocut.data.dataset import Images
from linocut.evaluation.case import Case
from linocut.evaluation.entry import Entry
from linocut.evaluation.rows import Row, to_line
from linocut.evaluation.run import evaluate
from linocut.evaluation.sample import Sample
from linocut.models import Defended
from linocut.transform.modules import EssentialFeatures

CLASSES = ("cat", "dog", "eel")
RADII = {"linf": 0.03, "l2": 0.6}
SIDE = 12


def pictures(count: int = 24) -> Images:
    """Colour pictures, each with a bright bar where its class says; some are nearly those of another class."""
    dice = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (count,), generator=dice)
    pixels = torch.randint(60, 120, (count, 3, SIDE, SIDE), generator=dice)
    for place, label in enumerate(labels.tolist()):
        pixels[place, label, 4 * label : 4 * label + 4] += 10 + 5 * (place % 9)
    pixels = pixels.to(torch.uint8)
    digest = hashlib.sha256(pixels.numpy().tobytes()).hexdigest()
    return Images(pixels=pixels, labels=labels, classes=CLASSES, name="pictures", split="test", sha256=digest)


class Bars(nn.Module):
    """Three classes, each the brightness of its own bar."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3 * SIDE * SIDE, 3, bias=False)
        with torch.no_grad():
            self.linear.weight.zero_()
            for label in range(3):
                self.linear.weight[label].view(3, SIDE, SIDE)[label, 4 * label : 4 * label + 4] = 0.4

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.linear(images.flatten(1))


def plan(norms: tuple[str, ...]) -> list[Entry]:
    """The clean predictions; in each norm a published attack, its probes, and one more."""
    entries = [Entry(name="clean", attack=None, column="clean")]
    for norm in norms:
        ball = ThreatModel(norm, RADII[norm])

        def add(attack, column="probe", *, norm=norm, ball=ball, **more):
            made = {"name": f"{norm}/{attack.name}", "attack": attack, "threat": ball, "column": column}
            entries.append(Entry(**made, kind="gradient", **more))

        short = {"num_steps": 3, "step_size": RADII[norm] / 6}
        add(PGD(name="pgd-published", **short), "published", limit=20)
        add(PGD(name="double-steps", **short | {"num_steps": 6}), limit=20)
        for factor in (0.5, 1.0, 2.0):
            wider = ThreatModel(norm, factor * RADII[norm])
            add(PGD(name=f"radius-{factor:g}", num_steps=3, loss="margin", any_iterate=True), ball=wider, limit=20)
        add(PGD(name="pgd-margin", num_steps=6, loss="margin", any_iterate=True), "worst")
    return entries


def card(name: str, transform: str | None, training: str = "atta") -> dict:
    """As much of a model's card as a report reads."""
    front = transform and {"class": transform, "settings": {}}
    return {"recipe": {"recipe": name, "method": training, "transform_at": "train"}, "transform": front}


def run_ledger(folder: Path, *, defended: bool, norms: tuple[str, ...] = ("linf", "l2"), name: str) -> Path:
    """A ledger that is really run, through the evaluation's own door."""
    transform = EssentialFeatures(eps=0.05, kernel_sizes=(3, 1, 1), backend="torch") if defended else None
    model = Defended(transform, Bars()).eval()
    images = pictures()
    evaluate(
        Case(model=model, images=images, device=torch.device("cpu"), searcher=model, raw=model),
        plan(norms),
        Sample(size=len(images), n=len(images), batch_size=12),
        folder,
        radii={norm: RADII[norm] for norm in norms},
        settings={
            "suite": "test",
            "model": "m",
            "model_hash": hashlib.sha256(name.encode()).hexdigest(),
            "data": "pictures",
            "data_hash": images.sha256,
        },
        card=card(name, "EssentialFeatures" if defended else None),
    )
    return folder


def made_up(
    folder: Path,
    *,
    n: int = 100,
    wrong: int = 0,
    published: dict[str, int],
    worst: dict[str, int],
    radii: dict[str, float] | None = None,
    square: tuple[int, int] | None = None,
    met: int | None = None,
    the_card: dict | None = None,
    **settings,
) -> Path:
    """A ledger with these counts: the first examples are wrong at first, the next fall as published, then the rest.

    `published` and `worst` say how many stand, by norm; the published attack met the last `met`, or all. `square` says
    how many of the last met Square too, and how many of them stand.
    """
    radii = radii or dict.fromkeys(published, 0.03)
    entries = {"clean": _described("clean", None, None)}
    rows = [_row("clean", e, prediction=int(e < wrong)) for e in range(n)]
    for norm, eps in radii.items():
        for attack, column, standing in (("pgd-published", "published", published), ("pgd-margin", "worst", worst)):
            name = f"{norm}/{attack}"
            first = n - met if met and column == "published" else 0
            entries[name] = _described(column, norm, eps) | ({"limit": met} if first else {})
            broken = [(e, wrong <= e < n - standing[norm]) for e in range(first, n)]
            rows += [_row(name, e, prediction=int(hit or e < wrong), broken=hit) for e, hit in broken]
        if square:
            entries[f"{norm}/square-published"] = _described("published", norm, eps) | {
                "kind": "query",
                "limit": square[0],
            }
            rows += [
                _row(f"{norm}/square-published", e, prediction=int(e < n - square[1]), broken=e < n - square[1])
                for e in range(n - square[0], n)
            ]
    fixed = {"suite": "strong", "model": "m", "data": "cifar-10", "data_hash": "d", "n": n, "seed": 0}
    fixed |= {"radii": radii, "dimensions": 3072, "classes": ["a", "b"]} | settings
    header = {"settings": fixed, "entries": entries, "made_with": {"linocut": "0", "command": [], "card": the_card}}
    folder.mkdir(parents=True)
    (folder / "header.json").write_text(json.dumps(header))
    (folder / "rows.jsonl").write_text("".join(map(to_line, rows)))
    return folder


def _described(column: str, norm: str | None, eps: float | None) -> dict:
    kind = "gradient" if norm else ""
    told = {"norm": norm, "eps": eps, "column": column, "kind": kind}
    return told | {"limit": None, "path": 1.0, "attack": None, "config": ""}


def _row(entry: str, example: int, *, prediction: int, broken: bool = False) -> Row:
    return Row(example=example, label=0, entry=entry, config="", seed=0, clean=0, prediction=prediction, broken=broken)
