"""Suites: ordered lists of entries, cheap and strong first.

Every suite begins with the clean predictions and the measurements, then takes L-inf before L2 so that L2 can
reuse what L-inf broke. In a norm: the published attack on all examples, the probes that findings need, then the
attacks of the worst case, each on those still standing. Random noise and Square come last, since their findings
ask what gradients missed. At the very end, so that a ledger can grow by it, `fast`, `strong` and `full` search in
whole grey levels for what rounding undid.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from linocut.attacks import Attack, autoattack
from linocut.errors import InputError
from linocut.evaluation import arsenal
from linocut.evaluation.balls import Ball
from linocut.evaluation.case import Model
from linocut.evaluation.entry import Entry
from linocut.evaluation.measures import InputGradient, Repeats, Seen
from linocut.evaluation.stranger import imported

Suite = str | Sequence[Attack]
Attacks = Callable[[Ball, Model | None], list[Entry]]
ASKED_AGAIN = 20  # the fewest examples at which a model is asked whether it repeats itself


@dataclass(frozen=True, kw_only=True)
class Outline:
    """What tells suites apart: their attacks, and how many examples the probes that findings need look at.

    published: how many examples the published attack runs on; None for all. levels: with how many queries the search
    in whole grey levels ends it; None for no such search.
    """

    attacks: Attacks
    probes: int
    published: int | None = None
    levels: int | None = None


SUITES = {
    # published: 100 steps on all would take the whole minute
    "fast": Outline(attacks=arsenal.fast, probes=20, published=50, levels=200),
    "paper": Outline(attacks=arsenal.paper, probes=200),
    "alternatives": Outline(attacks=arsenal.alternatives, probes=0),
    "strong": Outline(attacks=arsenal.strong, probes=500, levels=1000),
    "full": Outline(attacks=arsenal.full, probes=1000, levels=1000),
}


def named(suite: Suite) -> str:
    """What the header calls a suite; a list goes by the names of its attacks."""
    return suite if isinstance(suite, str) else ",".join(attack.name for attack in _attacks(suite))


def plan(
    suite: Suite,
    balls: dict[str, Ball],
    *,
    twin: Model | None = None,
    seen: bool = False,
    fixed_codes: bool = False,
    also: Suite | None = None,
) -> list[Entry]:
    """The entries of a suite: one of SUITES, a comma-separated list of entry names of `full`, or a user's list.

    That is module:function, called without arguments, or the attacks themselves (see linocut.attacks.attack). They and
    the named ones run in the worst case, in this order, after the published attack and the probes. "autoattack" is the
    name of its four parts. `also` is such a list too and comes after all else, so that it can be added to a ledger.
    fixed_codes: the model paints with a fixed codebook, which has a published attack of its own.
    """
    outline = SUITES.get(suite) if isinstance(suite, str) else None
    if outline is None:
        outline = Outline(attacks=_own(suite, balls, twin), probes=SUITES["strong"].probes)
    entries = measures(max(outline.probes, ASKED_AGAIN), seen=seen)
    for norm in sorted(balls, reverse=True):  # linf, then l2
        ball = balls[norm]
        as_published = [arsenal.published(ball)] + (arsenal.probes(ball, outline.probes) if outline.probes else [])
        if fixed_codes:
            as_published += arsenal.against_fixed_codes(ball)
        if outline.published is not None:
            as_published = [replace(e, limit=outline.published) if e.column == "published" else e for e in as_published]
        entries += as_published
        if norm == "l2" and "linf" in balls:
            entries.append(arsenal.reuse(ball))
        entries += outline.attacks(ball, twin)
    if outline.levels is not None:
        searches = [arsenal.level_search(balls[norm], outline.levels) for norm in sorted(balls, reverse=True)]
        for side_by_side in zip_longest(*searches):  # by attack, then norm: a new one comes last
            entries += [line for line in side_by_side if line is not None]
    if also is not None:
        more = _own(also, balls, twin)
        for norm in sorted(balls, reverse=True):
            if norm == "l2" and "linf" in balls:
                entries.append(arsenal.reuse(balls[norm], "reuse-linf-again"))
            entries += more(balls[norm], twin)
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"the suite has {name!r} twice: give its attacks different names")
    return entries


def measures(limit: int, *, seen: bool) -> list[Entry]:
    """The clean predictions and what is measured with no attack."""
    entries = [
        Entry(name="clean", attack=None, column="clean"),
        Entry(name="measure/gradient", attack=InputGradient(), column="measure"),
        Entry(name="measure/repeat", attack=Repeats(), column="measure", limit=limit),
    ]
    return entries + [Entry(name="measure/seen", attack=Seen(), column="measure")] * seen


def _own(suite: Suite, balls: dict[str, Ball], twin: Model | None) -> Attacks:
    """A user's list, as a worst case."""
    if not isinstance(suite, str) or ":" in suite:
        attacks = _returned_by(suite) if isinstance(suite, str) else _attacks(suite)
        return lambda ball, _: arsenal.worst_case(ball, attacks)
    wanted = [name.strip() for name in suite.split(",")]
    known: dict[str, dict[str, list[Entry]]] = {}
    for norm, ball in balls.items():  # some names are of one norm alone
        known[norm] = {entry.name.split("/")[1]: [entry] for entry in arsenal.full(ball, twin)}
        if "autoattack" in wanted:
            known[norm]["autoattack"] = arsenal.worst_case(ball, autoattack.standard())
    every = list(dict.fromkeys(name for of_norm in known.values() for name in of_norm))
    for name in wanted:
        if name not in every:
            raise InputError(
                f"no suite or attack {name!r}; suites are {', '.join(SUITES)}, attacks are {', '.join(every)} "
                "and autoattack; module:function names a list of your own"
            )
    return lambda ball, _: [entry for name in wanted for entry in known[ball.threat.norm].get(name, [])]


def _returned_by(place: str) -> Sequence[Attack]:
    try:
        found = imported(place)()
    except TypeError as reason:
        raise InputError(f"{place} is called without arguments and returns the attacks: {reason}") from reason
    return _attacks(found, f"{place} must return")


def _attacks(found: object, who_wants: str = "suite must be a name or") -> Sequence[Attack]:
    """What was given, if it is a list of attacks."""
    if not isinstance(found, Sequence) or not all(_is_attack(attack) for attack in found):
        raise InputError(f"{who_wants} a list of attacks, each with a name and a run method")
    return found


def _is_attack(thing: object) -> bool:
    named = isinstance(getattr(thing, "name", None), str) and not isinstance(thing, type)
    return named and callable(getattr(thing, "run", None))
