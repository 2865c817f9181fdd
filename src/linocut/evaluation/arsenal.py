"""The attacks that suites are made of, each with the settings it runs with."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from linocut.attacks.apgd import APGD, TargetedAPGD
from linocut.attacks.attack import Attack
from linocut.attacks.autoattack import AutoAttack
from linocut.attacks.chen import ChenLoop
from linocut.attacks.edges import EdgePGD
from linocut.attacks.frozen import FrozenPalettePGD
from linocut.attacks.noise_averaged import NoiseAveragedPGD
from linocut.attacks.pgd import PGD
from linocut.attacks.printability import PRINTED, PrintablePGD
from linocut.attacks.random_noise import RandomNoise
from linocut.attacks.square import Square
from linocut.attacks.surrogate import SurrogatePGD
from linocut.attacks.threat import ThreatModel
from linocut.attacks.transfer import Continued, TransferPGD
from linocut.attacks.whole_levels import LEVELS, WholeLevelPGD, WholeLevelSquare
from linocut.evaluation.balls import Ball
from linocut.evaluation.case import Model
from linocut.evaluation.entry import Entry
from linocut.evaluation.reuse import Reuse

RADII = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
_STEPS = {"linf": (0.5, 1.0, 2.0, 4.0), "l2": (1.0, 3.0, 7.0)}  # times 2.5 eps / number of steps
_MIDDLE = {"linf": (1.0, 2.0), "l2": (1.0, 3.0)}


def entry(threat: ThreatModel, attack: Attack, **rest) -> Entry:
    """An attack as a line of the worst case, unless told otherwise."""
    return Entry(name=f"{threat.norm}/{attack.name}", attack=attack, threat=threat, **({"column": "worst"} | rest))


def kind_of(attack: Attack) -> str:
    """How findings sort an attack; one that is not known counts as one that uses gradients."""
    first = attack.first if isinstance(attack, Continued) else attack
    if isinstance(attack, AutoAttack):
        return "query" if attack.part == "square" else "gradient"
    if isinstance(first, TransferPGD) and first.source is not None:  # without a source it is the model's own network
        return "transfer"
    kinds = {Square: "query", RandomNoise: "noise", Reuse: "reuse"}
    return next((kind for known, kind in kinds.items() if isinstance(attack, known)), "gradient")


def published(ball: Ball) -> Entry:
    """The paper's PGD: all steps are run, and the point of highest loss decides."""
    attack = PGD(name="pgd-published", num_steps=ball.num_steps, step_size=ball.step_size)
    return entry(ball.threat, attack, column="published", kind="gradient")


def against_fixed_codes(ball: Ball) -> list[Entry]:
    """What a fixed codebook meets besides: the loop of Chen et al. as published, then PGD past the codes.

    Their Jacobian is nearly zero far from the borders between codes; the identity is the cross-check it needs.
    """
    theirs = ChenLoop(name="chen-published", num_steps=ball.num_steps, step_size=ball.step_size, surrogate="soft")
    straight = SurrogatePGD(
        name="pgd-past-codes",
        surrogate="identity",
        num_steps=ball.num_steps,
        step_size=ball.step_size,
        any_iterate=True,
    )
    return [
        entry(ball.threat, theirs, column="published", kind="gradient"),
        entry(ball.threat, straight, kind="gradient"),
    ]


def probes(ball: Ball, limit: int) -> list[Entry]:
    """What the findings one-step, converged, surrogate, unbounded and monotone compare."""
    threat, steps, size = ball.threat, ball.num_steps, ball.step_size
    as_published: dict[str, Any] = {"num_steps": steps, "step_size": size}
    one = PGD(name="one-step", num_steps=1, step_size=threat.eps or 1.0, random_start=False)
    double = PGD(name="double-steps", num_steps=2 * steps, step_size=size)
    rivals = [
        SurrogatePGD(name="rival-true", surrogate="none", **as_published),
        TransferPGD(name="rival-undefended", **as_published),
    ]
    found = [
        entry(threat, one, column="probe", kind="gradient"),
        entry(threat, double, column="probe", kind="gradient"),
    ]
    found += [entry(threat, rival, column="probe", kind="rival") for rival in rivals]
    for factor in RADII:
        climb = PGD(name=f"radius-{factor:g}", num_steps=20, loss="margin", any_iterate=True)
        radius = factor * threat.eps if threat.norm == "l2" else min(1.0, factor * threat.eps)
        found.append(entry(ThreatModel(threat.norm, radius), climb, column="probe", kind="gradient"))
    whole = ThreatModel("linf", 1.0) if threat.norm == "linf" else ThreatModel("l2", math.sqrt(ball.values))
    far = PGD(name="unbounded", num_steps=100, path_ratio=10, loss="margin", any_iterate=True)
    found.append(entry(whole, far, column="probe", kind="gradient"))
    return [_limited(line, limit) for line in found]


def worst_case(ball: Ball, attacks: Sequence[Attack]) -> list[Entry]:
    """These attacks as lines of the worst case."""
    return [entry(ball.threat, attack, kind=kind_of(attack)) for attack in attacks]


def reuse(ball: Ball, name: str = "reuse-linf") -> Entry:
    """L-inf successes, as far as they lie in this ball or can be brought into it."""
    return entry(ball.threat, Reuse(name=name), kind="reuse", starts="linf")


def level_search(ball: Ball, queries: int) -> list[Entry]:
    """Searches among whole grey levels, from the successes that rounding undid; for the finding `quantised`.

    An L-inf ball that ends between two levels is rounded to whole ones, exact halves down: 0.031, which is 7.9 levels,
    becomes 8, as its images do when they are rounded. There is nothing to search in a ball of none.
    """
    threat = ball.threat
    if threat.norm == "linf":
        threat = ThreatModel("linf", max(0, math.ceil(LEVELS * threat.eps - 0.5 - 1e-6)) / LEVELS)
    if threat.eps == 0:
        return []
    attacks = WholeLevelPGD(), WholeLevelSquare(num_queries=queries)
    return [entry(threat, attack, column="probe", kind="levels", starts="fragile") for attack in attacks]


def fast(ball: Ball, twin: Model | None) -> list[Entry]:
    """A minute on a CPU for a small model: short climbs with long steps, few queries."""
    attacks: list[Attack] = [
        PGD(name="pgd-margin", num_steps=10, path_ratio=5, loss="margin", any_iterate=True),
        PGD(name="pgd-ce", num_steps=20, path_ratio=5, any_iterate=True),
        APGD(name="apgd-dlr", num_steps=20, loss="dlr"),
        *([] if twin is None else [TransferPGD(name="transfer", num_steps=10, source=twin, any_iterate=True)]),
        RandomNoise(draws=10),
        Square(name="square", num_queries=200),
    ]
    return worst_case(ball, attacks)


def paper(ball: Ball, twin: Model | None) -> list[Entry]:
    """Square with 1,000 queries on 500 images, as published."""
    attack = Square(name="square-published", num_queries=1000)
    return [entry(ball.threat, attack, column="published", kind="query", limit=500)]


def alternatives(ball: Ball, twin: Model | None) -> list[Entry]:
    """The paper's other adaptive attacks, and the identity for the whole transform, on every example.

    Steps and their length are those of the published PGD, so that only the gradient differs.
    """
    steps: dict[str, Any] = {"num_steps": ball.num_steps, "step_size": ball.step_size}
    attacks: list[Attack] = [
        EdgePGD(name="edges-published", **steps),
        PrintablePGD(name="few-colors-published", **steps),
        SurrogatePGD(name="soft-published", surrogate="soft", **steps),
        SurrogatePGD(name="identity-published", surrogate="identity", **steps),
        PrintablePGD(name="printed-colors-published", palette=PRINTED, **steps),
    ]
    return [entry(ball.threat, attack, column="published", kind="gradient") for attack in attacks]


def strong(ball: Ball, twin: Model | None) -> list[Entry]:
    """What *worst case* means: about 3,000 gradients and 5,000 queries for an example that nothing breaks."""
    norm = ball.threat.norm
    attacks: list[Attack] = [_climb("pgd-margin", factor, loss="margin") for factor in reversed(_MIDDLE[norm])]
    attacks += [_climb("pgd-ce", factor) for factor in reversed(_STEPS[norm])]
    attacks += [
        APGD(name="apgd-ce"),
        APGD(name="apgd-dlr", loss="dlr"),
        NoiseAveragedPGD(any_iterate=True),
        TransferPGD(name="pgd-undefended", num_steps=100, any_iterate=True),
        FrozenPalettePGD(num_steps=100, any_iterate=True),
        SurrogatePGD(name="pgd-identity", surrogate="identity", num_steps=100, any_iterate=True),
        SurrogatePGD(name="pgd-soft", surrogate="soft", num_steps=100, any_iterate=True),
        EdgePGD(num_steps=100, any_iterate=True),
        PrintablePGD(num_steps=100, any_iterate=True),
        TargetedAPGD(),
    ]
    if twin is not None:
        across = TransferPGD(name="transfer", num_steps=100, source=twin, any_iterate=True)
        attacks += [across, Continued(first=across, second=_climb("pgd-ce", _MIDDLE[norm][0]))]
    attacks += [RandomNoise(draws=100), Square(name="square", num_queries=5000)]
    return worst_case(ball, attacks)


def full(ball: Ball, twin: Model | None) -> list[Entry]:
    """The strong list, then longer climbs from new starts and 10,000 random draws on 100 examples."""
    lines = strong(ball, twin)
    gradients = [line for line in lines if line.kind not in ("noise", "query")]
    last = [line for line in lines if line.kind in ("noise", "query")]
    longer: list[Attack] = [
        PGD(
            name="pgd-margin-1000",
            num_steps=1000,
            path_ratio=25,
            loss="margin",
            random_start=True,
            any_iterate=True,
        ),
        PGD(name="pgd-ce-1000", num_steps=1000, path_ratio=25, random_start=True, any_iterate=True),
        *(APGD(name=f"apgd-{short}-restart-{i}", loss=loss) for i in (1, 2) for short, loss in _LOSSES.items()),
        NoiseAveragedPGD(name="pgd-noise-averaged-32", copies=32, loss="margin", any_iterate=True),
    ]
    draws = RandomNoise(name="random-noise-10000", draws=10_000)
    return [*gradients, *worst_case(ball, longer), entry(ball.threat, draws, kind="noise", limit=100), *last]


_LOSSES = {"ce": "cross_entropy", "dlr": "dlr"}


def _climb(name: str, factor: float, loss: str = "cross_entropy") -> PGD:
    """100 steps of `factor` times 2.5 eps / 100."""
    return PGD(name=f"{name}-{factor:g}", num_steps=100, path_ratio=2.5 * factor, loss=loss, any_iterate=True)


def _limited(line: Entry, limit: int) -> Entry:
    """All probes but the cheapest look at the first examples only."""
    return line if line.name.endswith("/one-step") else replace(line, limit=limit)
