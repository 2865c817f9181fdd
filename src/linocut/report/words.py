"""What each check asks, in plain words, and how numbers and names are written on the page."""

import re
from collections.abc import Sequence

from linocut.evaluation.record import Share

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


def told_apart(names: Sequence[str]) -> list[str]:
    """The names without the family that they all are of, and without changes of the recipe that they all have.

    >>> told_apart(["fast-cifar-10/baseline+epochs=5", "fast-cifar-10/natural+epochs=5"])
    ['baseline', 'natural']
    """
    if len(names) < 2:
        return list(names)
    changes = {"".join(re.findall(r"\+[^, ]*", name)) for name in names}
    shorter = [re.sub(r"\+[^, ]*", "", name) for name in names] if len(changes) == 1 else list(names)
    families = {name.rpartition("/")[0] for name in shorter}
    return [name.rpartition("/")[2] for name in shorter] if len(families) == 1 else shorter
