"""One line of a suite: an attack or a measurement, its ball, and what its rows are for."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import torch

from linocut.attacks.attack import Attack
from linocut.attacks.threat import ThreatModel
from linocut.evaluation.case import Case

Column = Literal["clean", "published", "worst", "probe", "measure"]


class Measurement(Protocol):
    """Takes one number of each example; NaN where there is none."""

    def measure(self, case: Case, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Float (B,) for uint8 pixels (B,C,H,W)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What runs, on whom, and what for.

    column: "published" runs on every example; "worst" only on those that nothing has broken yet; "probe" runs
    on every example and serves a finding, or on those that `starts` names. Whatever breaks an example inside the ball
    counts.
    kind: how the findings sort it: gradient, query, noise, transfer, reuse, rival, levels.
    limit: only the first so many examples of the sample. starts: "linf" hands over L-inf successes, "fragile" those
    of the entry's own norm that died when they were rounded to whole grey levels.
    """

    name: str
    attack: Attack | Measurement | None
    threat: ThreatModel | None = None
    column: Column
    kind: str = ""
    limit: int | None = None
    starts: Literal["linf", "fragile"] | None = None

    def described(self) -> dict[str, Any]:
        """The entry as the header holds it, with the digest that its rows carry."""
        plain = {
            "norm": self.threat.norm if self.threat else None,
            "eps": self.threat.eps if self.threat else None,
            "column": self.column,
            "kind": self.kind,
            "limit": self.limit,
            "starts": self.starts,
            "path": self._path(),
            "attack": _settings(self.attack),
        }
        return plain | {"config": digest(plain)}

    @cached_property
    def config(self) -> str:
        """The digest of all settings, which every row carries."""
        return self.described()["config"]

    def _path(self) -> float | None:
        """How far the attack can walk, where it has steps of one length."""
        step_for, steps = getattr(self.attack, "step_for", None), getattr(self.attack, "num_steps", None)
        return steps * step_for(self.threat) if callable(step_for) and steps else None


def digest(settings: dict[str, Any]) -> str:
    """What stands for an entry's settings in its rows."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def _settings(attack: object) -> Any:
    """A description of the attack; one that is no dataclass is told by its attributes."""
    if attack is None or dataclasses.is_dataclass(attack):
        return described(attack)
    values = {name: described(value) for name, value in sorted(getattr(attack, "__dict__", {}).items())}
    return {"class": type(attack).__name__} | values


def described(thing: object) -> Any:
    """A JSON-able description of an attack and all its settings."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        values = {field.name: described(getattr(thing, field.name)) for field in dataclasses.fields(thing)}
        return {"class": type(thing).__name__} | values
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, list | tuple):
        return [described(item) for item in thing]
    return f"<{type(getattr(thing, 'original', thing)).__name__}>"
