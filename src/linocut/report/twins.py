"""A model behind a transform against its undefended twin: what the transform gains, and what of it lasts."""

from collections.abc import Sequence
from dataclasses import dataclass

from linocut.report.accuracy import Line
from linocut.report.sources import Subject
from linocut.report.words import NORMS

MOST = 6  # pairs that get a sentence of their own


@dataclass(frozen=True, kw_only=True)
class Gain:
    """By how many points one accuracy lies above another; clear if their intervals do not touch."""

    points: float
    clear: bool

    def __str__(self) -> str:
        sign = "+" if self.points > 0 else "−" if self.points < 0 else "±"
        return f"{sign}{abs(self.points):.1f}"


def pairs(subjects: Sequence[Subject]) -> list[tuple[Subject, Subject]]:
    """Each model behind a transform with its twin: trained the same way, judged on the same images."""
    plain: dict[tuple[object, str | None], Subject] = {}
    for subject in subjects:
        if subject.identity.transform == "none":
            plain.setdefault((subject.sample, subject.identity.training), subject)
    return [
        (subject, plain[key])
        for subject in subjects
        if subject.identity.transform not in (None, "none")
        and (key := (subject.sample, subject.identity.training)) in plain
    ]


def against_twins(matched: Sequence[tuple[Subject, Subject]]) -> list[str]:
    """What the worst case says of all pairs in one sentence, then the numbers of each."""
    worst = [(pair, norm, gains(*pair, norm)[1]) for pair in matched for norm in pair[0].record.norms]
    better = [(pair, norm, gain) for pair, norm, gain in worst if gain and gain.clear and gain.points > 0]
    if better:
        told = [f"{pair[0].name} keeps {gain.points:.1f} points more in {NORMS[norm]}" for pair, norm, gain in better]
        first = f"In the worst case {'; '.join(told[:3])} than {'its' if len(better) == 1 else 'their'} undefended twin"
        first += f", and {len(told) - 3} more do." if len(told) > 3 else "."
    elif len(matched) == 1:
        first = f"In the worst case {matched[0][0].name} is not clearly better than {matched[0][1].name}."
    else:
        first = f"In the worst case none of {len(matched)} transforms is clearly better than its undefended twin."
    return [first, *(_numbers(*pair) for pair in matched[:MOST])]


def gains(defended: Subject, twin: Subject, norm: str) -> tuple[Gain | None, Gain | None]:
    """As published and in the worst case; None where one of the two ledgers lacks it."""
    (published, _, worst), (plain, _, floor) = defended.headline(norm), twin.headline(norm)
    return _gain(published, plain), _gain(worst, floor)


def _gain(mine: Line | None, other: Line | None) -> Gain | None:
    if mine is None or other is None:
        return None
    (low, high), (floor, ceiling) = mine.share.interval, other.share.interval
    return Gain(points=mine.share.percent - other.share.percent, clear=low > ceiling or high < floor)


def _numbers(defended: Subject, twin: Subject) -> str:
    parts = []
    for norm in defended.record.norms:
        published, worst = gains(defended, twin, norm)
        if published and worst:
            told = f"{NORMS[norm]} {published} points as published, {worst} in the worst case"
            lost = published.clear and published.points > 0 and worst.points < published.points / 2
            parts.append(told + (" (most of the gain is the attack's weakness)" if lost else ""))
    return f"{defended.name} against {twin.name}: {'; '.join(parts)}."
