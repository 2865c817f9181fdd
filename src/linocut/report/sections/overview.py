"""The table of all models, one line each, and the picture of it."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from linocut.report.accuracy import Line
from linocut.report.charts.rows import Dot, dot_chart
from linocut.report.judged import Judged
from linocut.report.sources import Subject
from linocut.report.words import NORMS, told_apart

MOST_ROWS = 40  # of the chart; a longer one is no picture any more


def norms_of(models: Sequence[Judged]) -> list[str]:
    """The norms that any model was judged in, L-inf first."""
    return [norm for norm in NORMS if any(norm in model.norms for model in models)]


def table(models: Sequence[Judged], subjects: Sequence[Subject]) -> list[dict[str, Any]]:
    """The rows: the number and the label of each ledger of a model, and for each norm its headline."""
    numbers = {subject.folder: number for number, subject in enumerate(subjects, 1)}
    names = [model.name for model in models]
    rows = []
    for model, name in zip(models, told_apart(names), strict=True):
        cells = {norm: model.headline(norm) for norm in model.norms}
        ledgers = {numbers[ledger.folder]: ledger.label for ledger in model.ledgers}
        longest = numbers[model.longest.folder]
        rows.append({"model": model, "name": name, "ledgers": ledgers, "longest": longest, "cells": cells})
    return rows


def met_fewer(model: Judged) -> bool:
    """Whether a worst case of its line is of fewer images than were judged."""
    worst = [model.headline(norm)[2] for norm in model.norms]
    return any(line is not None and line.share.n < model.n for line in worst)


def shared_radius(models: Sequence[Judged], norm: str) -> float | None:
    """The radius of a norm where all models have the same."""
    radii = {model.norms[norm] for model in models if norm in model.norms}
    return radii.pop() if len(radii) == 1 else None


def shared_network(models: Sequence[Judged]) -> str | None:
    """The architecture where all models that have a card have the same."""
    found = {model.identity.network for model in models}
    return found.pop() if len(found) == 1 else None


def picture(models: Sequence[Judged], norm: str) -> Markup | None:
    """As published and worst case of each model in a norm, with their intervals."""
    rows, told = [], []
    for model in models[:MOST_ROWS]:
        if norm not in model.norms:
            continue
        published, same, worst = model.headline(norm)
        dots = [_dot(one, look) for one, look in ((published, "published"), (same or worst, "worst")) if one]
        if dots:
            rows.append((model.name, dots))
            told.append(f"{model.name} " + ", ".join(f"{dot.look} {dot.at:.1f} %" for dot in dots))
    if not rows:
        return None
    return dot_chart(
        rows,
        span=(0, 100),
        x_name="per cent hold",
        title=f"As published and worst case in {NORMS[norm]}",
        description="; ".join(told),
        joined=True,
    )


def _dot(line: Line, look: str) -> Dot:
    low, high = line.share.interval
    return Dot(look=look, at=line.share.percent, low=low, high=high)
