"""One ledger in detail: accuracies, waterfall, curves, findings, gallery, likeness, and how to repeat it."""

import shlex
from itertools import pairwise
from typing import Any

from linocut.evaluation.header import IN_MEMORY
from linocut.evaluation.packing import MOST_WEIGHTS
from linocut.report import curves, gallery, perceptibility, verdict, waterfall
from linocut.report.charts.lines import Series, line_chart
from linocut.report.charts.rows import Bar, bar_chart
from linocut.report.paper_figures import ambiguous, regions
from linocut.report.sidecar import Sidecar
from linocut.report.sources import Subject
from linocut.report.words import NORMS, QUESTIONS

SETTINGS = ("suite", "n", "size", "split", "seed", "batch_size", "precision", "draws", "preprocess", "twin")
HASHES = ("model_hash", "data_hash", "twin_hash")
ORDER = ("fail", "warn", "ok", "not applicable")


def detail(subject: Subject, pictures: int, *, charts: bool) -> dict[str, Any]:
    """The values of a fold-out, with so many pictures in its gallery, and with charts or without."""
    sidecar = Sidecar(subject.folder)
    choices = gallery.chosen(subject, sidecar) if pictures else []
    return {
        "verdict": verdict.of_one(subject),
        "lines": subject.lines,
        "norms": [_of_norm(subject, norm, sidecar) for norm in subject.record.norms] if charts else [],
        "findings": _findings(subject),
        "gallery": [gallery.pictured(choice, subject) for choice in choices[:pictures]],
        "gallery_total": len(choices),
        "has_figures": sidecar.exists,
        "likenesses": perceptibility.likenesses(subject, sidecar) if charts else [],
        "regions": regions(subject, choices),
        "ambiguous": ambiguous(subject, sidecar) if pictures else [],
        "facts": _facts(subject),
        "command": _command(subject),
        "whole": _whole(subject),
        "verify": _verify(subject),
        "large": _is_large(subject),
    }


def _of_norm(subject: Subject, norm: str, sidecar: Sidecar) -> dict[str, Any]:
    record = subject.record
    radius, steps = curves.over_radius(record, norm), curves.over_steps(record, norm, sidecar)
    falls = waterfall.falls(record, norm)
    return {
        "norm": norm,
        "name": NORMS[norm],
        "eps": record.norms[norm],
        "falls": falls,
        "start": record.clean.n,
        "idle": waterfall.took_nobody(record, norm),
        "waterfall": _waterfall(falls, record.clean.n, norm) if record.clean.n else None,
        "radius": radius,
        "radius_chart": _radius_chart(radius, record.norms[norm], norm) if radius else None,
        "steps": steps,
        "steps_chart": _steps_chart(steps, norm) if steps else None,
    }


def _waterfall(falls: list[waterfall.Fall], n: int, norm: str):
    bars, before = [Bar(name="all", look="fill clean", start=0, end=n, told=str(n))], n
    for fall in falls:
        look = "fill " + (fall.column if fall.column in ("clean", "published") else "worst")
        bars.append(Bar(name=fall.name, look=look, start=before, end=fall.standing, told=f"−{fall.lost}"))
        before = fall.standing
    bars.append(Bar(name="stand in the end", look="fill ok", start=0, end=before, told=str(before)))
    told = ", ".join(f"{fall.name} takes {fall.lost}" for fall in falls) or "nothing takes any"
    title = f"Which attack broke how many in {NORMS[norm]}"
    return bar_chart(bars, most=n, title=title, description=f"Of {n}: {told}; {before} stand in the end")


def _radius_chart(radius: list, eps: float, norm: str):
    points = [(at, share.percent, *share.interval) for at, share in radius]
    return line_chart(
        [Series(name="accuracy", look="worst", points=points, dots=True)],
        title=f"Accuracy over the radius in {NORMS[norm]}",
        description="; ".join(f"{y:.1f} % at {x:.3g}" for x, y, *_ in points),
        x_name=f"radius ({NORMS[norm]})",
        y_name="per cent hold",
        y_range=(0, 100),
        mark=(eps, "judged radius"),
    )


def _steps_chart(steps: list[curves.LossCurve], norm: str):
    looks = {"pgd-published": "published", "double-steps": "worst"}
    series = [
        Series(
            name=curve.name,
            look=looks[curve.name],
            points=list(zip(range(len(curve.middle)), curve.middle, curve.low, curve.high, strict=True)),
        )
        for curve in reversed(steps)
    ]
    values = [value for curve in steps for value in (*curve.low, *curve.high)]
    ends = "; ".join(f"{curve.name} ends at {curve.middle[-1]:.3g} after {len(curve.middle) - 1}" for curve in steps)
    return line_chart(
        series,
        title=f"Loss over the steps in {NORMS[norm]}",
        description=f"Median {steps[0].loss} over {steps[0].examples} examples: {ends} steps",
        x_name="steps",
        y_name=f"{steps[0].loss}, median",
        y_range=(min(0.0, *values), max(values) or 1.0),
    )


def _findings(subject: Subject) -> list[dict[str, Any]]:
    found = sorted(subject.findings, key=lambda finding: ORDER.index(finding.status))
    return [
        {
            "code": finding.code,
            "status": finding.status,
            "norm": finding.norm,
            "norm_name": NORMS.get(finding.norm or "", ""),
            "question": QUESTIONS[finding.code],
            "sentence": finding.sentence,
            "advice": finding.advice if finding.status != "ok" else "",
        }
        for finding in found
    ]


def _facts(subject: Subject) -> list[tuple[str, str]]:
    record, identity = subject.record, subject.identity
    settings, made = record.settings, record.made_with
    radii = ", ".join(f"{NORMS[norm]} {eps:.6g}" for norm, eps in record.norms.items())
    facts = [
        ("ledger", str(subject.folder)),
        ("model", str(settings.get("model"))),
        ("data", f"{settings.get('data')}"),
        ("network", identity.network or "not known: the model has no card"),
        ("trained", identity.training or "not known: the model has no card"),
        ("transform", _transform(subject)),
        ("radii", radii),
    ]
    facts += [(name.replace("_", " "), str(settings[name])) for name in SETTINGS if settings.get(name) is not None]
    facts += [(name.replace("_", " "), str(settings[name])) for name in HASHES if settings.get(name) is not None]
    if record.packed is not None:
        facts.append(("packed", f"images of {record.packed.get('images')} of {record.packed.get('of')} examples"))
    versions = [name for name in ("date", "linocut", "source", "torch", "python", "machine") if name in made]
    return facts + [(name, str(made[name])) for name in versions]


def _transform(subject: Subject) -> str:
    identity = subject.identity
    if identity.transform in (None, "none"):
        return "none" if identity.transform else "not known"
    return f"{identity.transform}, since {'training' if identity.transform_at == 'train' else 'test time only'}"


def _command(subject: Subject) -> str | None:
    """The command that repeats the run in another folder; of older ledgers the one that was typed."""
    repeat = _words(subject, "repeat")
    if repeat:
        return shlex.join(["linocut", *repeat, "--out", "repeated"])
    typed = _words(subject, "command")[1:]
    return shlex.join(["linocut", *typed]) if typed[:1] == ["evaluate"] else None


def _verify(subject: Subject) -> str:
    """The command that checks the ledger from any folder; it names the model if the ledger's path is relative.

    A packed ledger finds its model by itself; where one from memory can be found, only the reader knows.
    """
    named = subject.record.settings.get("model")
    place = _words(subject, "repeat")[1:2] if subject.record.packed is None else []
    if str(named).endswith(IN_MEMORY):
        place = ["MODULE:FUNCTION"]
    model = ["--model", *place] if place and place != [named] else []
    return shlex.join(["linocut", "verify", str(subject.folder.resolve()), *model])


def _is_large(subject: Subject) -> bool:
    """Whether the model's weights are more than is published."""
    card = subject.record.made_with.get("card")
    weights = card.get("weights") if isinstance(card, dict) else None
    size = weights.get("bytes") if isinstance(weights, dict) else None
    return isinstance(size, int) and size > MOST_WEIGHTS


def _whole(subject: Subject) -> str | None:
    """The command that trained the model as well, where one did both, without what it printed and when it stopped."""
    typed = _words(subject, "command")[1:]
    if typed[:1] not in (["demo"], ["reproduce"]):
        return None
    lasting = [
        word
        for before, word in pairwise(["", *typed])
        if word != "--json" and not word.startswith("--minutes") and before != "--minutes"
    ]
    return shlex.join(["linocut", *lasting])


def _words(subject: Subject, name: str) -> list[str]:
    """Arguments as the header has them; none where it has anything else."""
    found = subject.record.made_with.get(name)
    return found if isinstance(found, list) and all(isinstance(word, str) for word in found) else []
