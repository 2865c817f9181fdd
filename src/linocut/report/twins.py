"""A model behind a transform against its undefended twin: what the transform gains, and what of it lasts."""

from collections.abc import Sequence
from dataclasses import dataclass

from linocut.evaluation.intervals import lopsided
from linocut.report.accuracy import Line
from linocut.report.judged import Judged
from linocut.report.words import NORMS, told_apart

MOST = 6  # pairs that get a sentence of their own


@dataclass(frozen=True, kw_only=True)
class Gain:
    """By how many points one accuracy lies above another, and whether that is beyond doubt."""

    points: float
    clear: bool

    def __str__(self) -> str:
        sign = "+" if self.points > 0 else "−" if self.points < 0 else "±"
        return f"{sign}{abs(self.points):.1f}"


def pairs(models: Sequence[Judged]) -> list[tuple[Judged, Judged]]:
    """Each model behind a transform with its twin: trained the same way, judged by the same suite on the same images.

    Where several would do, as they do with several seeds, the twin of the same seed is taken, else the first.
    """
    found = []
    for model in models:
        if model.identity.transform in (None, "none"):
            continue
        plain = [other for other in models if other.identity.transform == "none" and _alike(model, other)]
        plain.sort(key=lambda other: other.identity.seed != model.identity.seed)
        found += [(model, twin) for twin in plain[:1]]
    return found


def _alike(model: Judged, other: Judged) -> bool:
    same = model.identity.training == other.identity.training and model.suite == other.suite
    return same and model.sample == other.sample


def against_twins(matched: Sequence[tuple[Judged, Judged]]) -> list[str]:
    """What the worst case says of all pairs in one sentence, then the numbers of each."""
    first = _of_pair(*matched[0]) if len(matched) == 1 else _of_all(matched)
    return [first, *(_numbers(*pair) for pair in matched[:MOST])]


def gains(defended: Judged, twin: Judged, norm: str) -> tuple[Gain | None, Gain | None]:
    """As published and in the worst case; None where one of the two lacks it.

    Published figures differ clearly if their intervals do not touch; worst cases by the images on which they differ.
    """
    (published, _, worst), (plain, _, floor) = defended.headline(norm), twin.headline(norm)
    mine, others = defended.standing(norm), twin.standing(norm)
    return (
        _gain(published, plain, clear=published is not None and plain is not None and _apart(published, plain)),
        _gain(worst, floor, clear=lopsided(len(mine - others), len(others - mine))),
    )


def _gain(mine: Line | None, other: Line | None, *, clear: bool) -> Gain | None:
    if mine is None or other is None:
        return None
    return Gain(points=mine.share.percent - other.share.percent, clear=clear)


def _apart(mine: Line, other: Line) -> bool:
    (low, high), (floor, ceiling) = mine.share.interval, other.share.interval
    return low > ceiling or high < floor


def _of_pair(defended: Judged, twin: Judged) -> str:
    parts = [
        f"{abs(gain.points):.1f} points {'more' if gain.points > 0 else 'less'} in {NORMS[norm]}"
        for norm, gain in _clear(defended, twin).items()
    ]
    name, plain = told_apart([defended.name, twin.name])
    if parts:
        return f"In the worst case {name} keeps {' and '.join(parts)} than {plain}."
    return f"In the worst case {name} is not clearly better than {plain}."


def _of_all(matched: Sequence[tuple[Judged, Judged]]) -> str:
    found = [_clear(*pair) for pair in matched]
    parts = []
    for norm in dict.fromkeys(norm for defended, _ in matched for norm in defended.norms):
        points = [gains[norm].points for gains in found if norm in gains]
        better, worse = (sum(sign * each > 0 for each in points) for sign in (1, -1))
        parts.append(f"in {NORMS[norm]} {better or 'none'} clearly better, {worse or 'none'} clearly worse")
    told = f"Of {len(matched)} models behind a transform, beside the same without it, in the worst case: "
    return f"{told}{'; '.join(parts)}."


def _clear(defended: Judged, twin: Judged) -> dict[str, Gain]:
    """The differences of the worst case that are beyond doubt, by norm."""
    found = {norm: gains(defended, twin, norm)[1] for norm in defended.norms}
    return {norm: gain for norm, gain in found.items() if gain is not None and gain.clear}


def _numbers(defended: Judged, twin: Judged) -> str:
    parts = []
    for norm in defended.norms:
        published, worst = gains(defended, twin, norm)
        if published and worst:
            told = f"{NORMS[norm]} {published} points as published, {worst} in the worst case"
            lost = published.clear and published.points > 0 and worst.points < published.points / 2
            share = "most of the gain is" if worst.points > 0 else "the gain is all"
            parts.append(told + (f" ({share} the attack's weakness)" if lost else ""))
    name, plain = told_apart([defended.name, twin.name])
    return f"{name} against {plain}: {'; '.join(parts)}."
