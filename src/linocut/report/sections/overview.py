"""The table of all ledgers, one line each, and the picture of it."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from linocut.report.accuracy import CLEAN, Line
from linocut.report.charts.rows import Dot, dot_chart
from linocut.report.sources import Subject
from linocut.report.words import NORMS

MOST_ROWS = 40  # of the chart; a longer one is no picture any more


def norms_of(subjects: Sequence[Subject]) -> list[str]:
    """The norms that any subject was judged in, L-inf first."""
    return [norm for norm in NORMS if any(norm in subject.record.norms for subject in subjects)]


def table(subjects: Sequence[Subject]) -> list[dict[str, Any]]:
    """The rows: clean, and for each norm its headline; None where a ledger has none."""
    rows = []
    for number, subject in enumerate(subjects, 1):
        cells = {norm: subject.headline(norm) for norm in subject.record.norms}
        rows.append({"number": number, "subject": subject, "clean": subject.line(CLEAN), "cells": cells})
    return rows


def met_fewer(subject: Subject) -> bool:
    """Whether a worst case of its line is of fewer images than were judged."""
    worst = [subject.headline(norm)[2] for norm in subject.record.norms]
    return any(line is not None and line.share.n < subject.record.clean.n for line in worst)


def shared_radius(subjects: Sequence[Subject], norm: str) -> float | None:
    """The radius of a norm where all ledgers have the same."""
    radii = {subject.record.norms[norm] for subject in subjects if norm in subject.record.norms}
    return radii.pop() if len(radii) == 1 else None


def picture(subjects: Sequence[Subject], norm: str) -> Markup | None:
    """As published and worst case of each ledger in a norm, with their intervals."""
    rows, told = [], []
    for subject in subjects[:MOST_ROWS]:
        if norm not in subject.record.norms:
            continue
        published, same, worst = subject.headline(norm)
        dots = [_dot(one, look) for one, look in ((published, "published"), (same or worst, "worst")) if one]
        if dots:
            rows.append((subject.name, dots))
            told.append(f"{subject.name} " + ", ".join(f"{dot.look} {dot.at:.1f} %" for dot in dots))
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
