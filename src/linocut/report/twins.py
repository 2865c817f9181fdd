"""A model behind a transform against its undefended twin: what the transform gains, and what of it lasts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from linocut.evaluation.intervals import lopsided
from linocut.report.accuracy import Line
from linocut.report.judged import Judged
from linocut.report.sources import Subject
from linocut.report.words import NORMS, rounded

MOST = 6  # pairs that get a sentence of their own


@dataclass(frozen=True, kw_only=True)
class Gain:
    """By how many points one accuracy lies above another, and whether that is beyond doubt."""

    points: float
    clear: bool
    decimals: int

    @property
    def size(self) -> str:
        """Without its sign."""
        return rounded(abs(self.points), self.decimals)

    def __str__(self) -> str:
        sign = "+" if self.points > 0 else "−" if self.points < 0 else "±"
        return f"{sign}{self.size}"


def pairs(models: Sequence[Judged]) -> list[tuple[Judged, Judged]]:
    """Each defended model with its twin, both by the ledgers of suites and images that they share.

    The twin is the one that its ledgers name, where they name one; else one that was trained the same way, of the same
    seed if there is such a one. Of a model without a card only a named one says that it is defended.
    """
    found = []
    for model in models:
        if model.identity.transform == "none" or (model.identity.transform is None and not _named(model)):
            continue
        plain = [other for other in models if other is not model and _may_be_twin(other, model)]
        plain.sort(key=lambda other: other.identity.seed != model.identity.seed)
        shared = (_by_what_they_share(model, other) for other in plain)
        found += [pair for pair in shared if pair is not None][:1]
    return found


def _may_be_twin(other: Judged, model: Judged) -> bool:
    if _named(model):
        return other.longest.record.settings.get("model_hash") in _named(model)
    return other.identity.transform == "none" and other.identity.training == model.identity.training


def _named(model: Judged) -> set[str]:
    """The hashes of the twins that its ledgers name."""
    hashes = (ledger.record.settings.get("twin_hash") for ledger in model.ledgers)
    return {named for named in hashes if isinstance(named, str)}


def _by_what_they_share(model: Judged, other: Judged) -> tuple[Judged, Judged] | None:
    """Both with the ledgers that have their like among the other's, if there are such."""
    shared = {_judgement(ledger) for ledger in model.ledgers} & {_judgement(ledger) for ledger in other.ledgers}
    if not shared:
        return None
    mine, theirs = (
        replace(one, ledgers=tuple(ledger for ledger in one.ledgers if _judgement(ledger) in shared))
        for one in (model, other)
    )
    return mine, theirs


def _judgement(ledger: Subject) -> tuple[Any, ...]:
    """The suite, and the images and balls that it was run on."""
    return ledger.record.settings["suite"], ledger.sample


def against_twins(matched: Sequence[tuple[Judged, Judged]], short: Mapping[str, str]) -> list[str]:
    """What the worst case says of all pairs in one sentence, then the numbers of each, under short names."""
    named = [(replace(model, name=short[model.name]), replace(twin, name=short[twin.name])) for model, twin in matched]
    first = _of_pair(*named[0]) if len(named) == 1 else _of_all(named)
    more = [f"And {len(named) - MOST} more, in the table."] if len(named) > MOST else []
    return [first, *(_numbers(*pair) for pair in named[:MOST]), *more]


def gains(defended: Judged, twin: Judged, norm: str) -> tuple[Gain | None, Gain | None]:
    """As published and in the worst case; None where one of the two lacks it.

    Published figures differ clearly if their intervals do not touch; worst cases by the images on which they differ.
    """
    (published, _, worst), (plain, _, floor) = defended.headline(norm), twin.headline(norm)
    return (
        _gain(published, plain, clear=published is not None and plain is not None and _apart(published, plain)),
        _gain(worst, floor, clear=differ(defended.standing(norm), twin.standing(norm))),
    )


def lasting(defended: Judged, twin: Judged, norm: str) -> tuple[Gain | None, Gain | None, int | None]:
    """The same, the worst case over no more images than the published attack met; how many, where they are fewer."""
    published, worst = gains(defended, twin, norm)
    (line, same, _), (_, floor, _) = defended.headline(norm), twin.headline(norm)
    if line is None or same is None or floor is None:
        return published, worst, None
    met = defended.longest.record.of[f"{norm}/{line.attack}"].keys()
    clear = differ(defended.standing(norm) & met, twin.standing(norm) & met)
    return published, _gain(same, floor, clear=clear), len(met)


def differ(mine: set[int], others: set[int]) -> bool:
    """Whether so many more images stand for one than for the other that it is beyond doubt."""
    return lopsided(len(mine - others), len(others - mine))


def _gain(mine: Line | None, other: Line | None, *, clear: bool) -> Gain | None:
    if mine is None or other is None:
        return None
    decimals = min(mine.share.decimals, other.share.decimals)
    return Gain(points=mine.share.percent - other.share.percent, clear=clear, decimals=decimals)


def _apart(mine: Line, other: Line) -> bool:
    (low, high), (floor, ceiling) = mine.share.interval, other.share.interval
    return low > ceiling or high < floor


def _of_pair(defended: Judged, twin: Judged) -> str:
    parts = [
        f"{gain.size} points {'more' if gain.points > 0 else 'less'} in {NORMS[norm]}"
        for norm, gain in _clear(defended, twin).items()
    ]
    if parts:
        return f"In the worst case {defended.name} keeps {' and '.join(parts)} than {twin.name}."
    return f"In the worst case {defended.name} is not clearly better than {twin.name}."


def _of_all(matched: Sequence[tuple[Judged, Judged]]) -> str:
    found = [_clear(*pair) for pair in matched]
    parts = []
    for norm in dict.fromkeys(norm for defended, _ in matched for norm in defended.norms):
        points = [gains[norm].points for gains in found if norm in gains]
        better, worse = (sum(sign * each > 0 for each in points) for sign in (1, -1))
        parts.append(f"in {NORMS[norm]} {better or 'none'} clearly better, {worse or 'none'} clearly worse")
    told = f"Of {len(matched)} defended models, beside the same without their defence, in the worst case: "
    return f"{told}{'; '.join(parts)}."


def _clear(defended: Judged, twin: Judged) -> dict[str, Gain]:
    """The differences of the worst case that are beyond doubt, by norm."""
    found = {norm: gains(defended, twin, norm)[1] for norm in defended.norms}
    return {norm: gain for norm, gain in found.items() if gain is not None and gain.clear}


def _numbers(defended: Judged, twin: Judged) -> str:
    parts = []
    for norm in defended.norms:
        published, worst, met = lasting(defended, twin, norm)
        if published and worst:
            told = f"{NORMS[norm]} {published} points as published, {worst} in the worst case"
            told += f" on the same {met} images" if met else ""
            lost = published.clear and published.points > 0 and worst.points < published.points / 2
            share = "most of the gain is" if worst.points > 0 else "the gain is all"
            parts.append(told + (f" ({share} the attack's weakness)" if lost else ""))
    return f"{defended.name} against {twin.name}: {'; '.join(parts)}."
