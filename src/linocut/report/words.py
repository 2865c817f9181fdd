"""What each check asks, in plain words, and how numbers and names are written on the page."""

import re
from collections.abc import Sequence

from linocut.evaluation.record import Share

_NAME = re.compile(
    r"(?P<family>(.*/)?)(?P<row>[^/+]*?)(?P<changes>(\+[^/]*?)?)(?P<end>(, seed \d+)?( \([^()]*\))?( #\d+)?)", re.DOTALL
)
NORMS = {"linf": "L∞", "l2": "L2"}
QUESTIONS = {
    "zero-gradient": "Does the gradient see the image?",
    "randomness": "Does the model repeat itself?",
    "one-step": "Do many steps beat one?",
    "unbounded": "Does everything fall when any image is allowed?",
    "monotone": "Does a larger ball never help the model?",
    "converged": "Has the published attack arrived, or was it stopped on its way?",
    "ascent": "Does the published attack climb at all?",
    "black-box": "Do attacks without gradients find no more?",
    "noise": "Does random noise find no more?",
    "containment": "Is the larger ball the more dangerous one?",
    "transfer": "Do another model's adversarial images find no more?",
    "surrogate": "Is the gradient that the attack uses the best there is?",
    "silent": "Was every adversarial image that was seen also counted?",
    "quantised": "Do the adversarial images survive in whole grey levels?",
    "leak": "Were the judged images kept out of training?",
}
MARKS = {"ok": "✓", "warn": "!", "fail": "✕", "not applicable": "–", "unfinished": "…"}


def percent(share: Share) -> str:
    """Two decimals, as `linocut evaluate` prints them; a dash where there is no example."""
    return f"{share.percent:.2f}" if share.n else "–"


def interval(share: Share) -> str:
    """The 95 % interval in per cent."""
    if not share.n:
        return ""
    low, high = share.interval
    return f"{low:.2f} to {high:.2f}"


def rounded(value: float, decimals: int) -> str:
    """Ties go up, as a reader would round: means over seeds and shares of 2,000 images have many.

    >>> rounded(5.625, 2), rounded(63.15, 1)
    ('5.63', '63.2')
    """
    return f"{value + 1e-9:.{decimals}f}"  # 63.15 in floats is a little less


def told_apart(names: Sequence[str]) -> list[str]:
    """The names without the family that they all are of, and without changes of the recipe that they all have.

    >>> told_apart(["fast-cifar-10/baseline+epochs=5, seed 1", "fast-cifar-10/natural+epochs=5, seed 0"])
    ['baseline, seed 1', 'natural, seed 0']
    """
    family, changes = in_common(names)
    parts = [_NAME.fullmatch(name) for name in names]
    shorter = [f"{part['row']}{'' if changes else part['changes']}{part['end']}" for part in parts if part]
    shorter = shorter if family else [name.replace(changes, "", 1) for name in names]
    return shorter if len(set(shorter)) == len(set(names)) and all(shorter) else list(names)


def in_common(names: Sequence[str]) -> tuple[str, str]:
    """The family and the changes of the recipe that all of several names have: ("fast-cifar-10/", "+epochs=5")."""
    parts = [part for name in names if (part := _NAME.fullmatch(name))]
    families, changes = ({part[which] for part in parts} for which in ("family", "changes"))
    several = len(names) > 1
    return (
        families.pop() if several and len(families) == 1 else "",
        changes.pop() if several and len(changes) == 1 else "",
    )
