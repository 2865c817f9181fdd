"""Everything that decides the outcome of a training run, in one frozen record that JSON can hold."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from linocut.errors import InputError
from linocut.models import Architecture

CHOICES: dict[str, tuple[Any, ...]] = {
    "method": ("natural", "atta"),
    "loss": ("cross-entropy", "trades"),
    "norm": ("linf", "l2"),
    "schedule": ("steps", "one-cycle"),
    "transform_at": ("test", "train"),
    "precision": ("float32", "bfloat16"),
    "canvas_store": ("float32", "half", "int8"),
}
AT_LEAST: dict[str, float] = {
    "eps": 0, "step_size": 0, "num_steps": 0, "start_noise": 0, "gradient_noise": 0, "reset_every": 0,
    "trades_beta": 0, "pad": 0, "epochs": 1, "batch_size": 1, "learning_rate": 0, "momentum": 0, "weight_decay": 0,
    "gamma": 0, "averaging": 0, "shards": 1,
}  # fmt: skip
MAY_BE_NULL: dict[str, type] = {"image_size": int, "transform": dict}  # and what they are otherwise
MOST = 1e30  # of a number; beyond it float32 ends
MOST_SHOWN = 80  # characters of a value in an error


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """One training run. Lengths are on the unit range; epochs count from 0.

    norm: of the training attack, and so of eps and step_size. The paper trains in L-inf alone.
    gradient_noise: the deviation of normal noise that the training attack adds wherever it takes a gradient, so that
    a network gains nothing by misleading it at one point. The paper has none.
    transform: {"class": ..., "settings": {...}} as in a model's card, or None. With "fit": {...} beside them, the
    run first fits it on its training images, and what it found takes the place of "fit" (fitting.py).
    transform_at: whether it is there in training too ("train", the paper's retrained) or only later ("test", its
    pretrained).
    milestones: epochs at whose start the learning rate is multiplied by gamma (schedule "steps").
    warmup: the share of the run in which a one-cycle schedule rises. averaging: the decay of a running
    average of the weights, 0 for none. reset_every: epochs after which perturbations start anew, 0 for never.
    shards: equal parts of the data that each give the same share to every batch; processes own whole ones.
    half_weights: whether kernels and matrices of the final network are rounded to half precision before it is judged.
    """

    recipe: str
    data_set: str
    architecture: str
    image_size: int | None = None
    method: str = "atta"
    loss: str = "cross-entropy"
    trades_beta: float = 6.0
    norm: str = "linf"
    eps: float = 8 / 255
    step_size: float = 2 / 255
    num_steps: int = 7
    start_noise: float = 0.001
    gradient_noise: float = 0.0
    reset_every: int = 10
    pad: int = 0
    flip: bool = False
    transform: Mapping[str, Any] | None = None
    transform_at: str = "train"
    epochs: int = 38
    batch_size: int = 64
    learning_rate: float = 0.1 / 64
    momentum: float = 0.9
    weight_decay: float = 2e-4 * 64
    schedule: str = "steps"
    milestones: tuple[int, ...] = (30, 35)
    gamma: float = 0.1
    warmup: float = 0.2
    averaging: float = 0.0
    precision: str = "float32"
    channels_last: bool = False
    compile: bool = False
    canvas_store: str = "half"
    shards: int = 1
    half_weights: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        Architecture(name=self.architecture)
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise InputError(f"{name} must be one of {list(choices)}, got {getattr(self, name)!r}")
        for name, least in AT_LEAST.items():
            value = getattr(self, name)
            if not least <= value <= MOST:  # nor is a value that is no number
                raise InputError(f"{name} must be at least {least} and at most {MOST:g}, got {value!r}")
        if self.norm == "linf" and self.eps > 1:
            raise InputError(f"eps may be at most 1 in linf, got {self.eps!r}")
        if self.norm == "l2" and self.canvas_store == "int8":
            raise InputError("canvas_store int8 is for linf, where no pixel moves further than eps: use half for l2")
        for name in ("averaging", "momentum", "warmup"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 0 and below 1, got {getattr(self, name)!r}")
        if self.batch_size % self.shards:
            raise InputError(f"batch_size {self.batch_size} must be a multiple of shards {self.shards}")
        if not all(type(epoch) is int and epoch >= 0 for epoch in self.milestones):
            raise InputError(f"milestones must be epochs, whole numbers from 0, got {list(self.milestones)!r}")
        if self.transform is not None:
            self._check_transform(self.transform)

    @staticmethod
    def _check_transform(transform: Mapping[str, Any]) -> None:
        if set(transform) - {"fit"} != {"class", "settings"}:
            raise InputError(f"transform must have a class and settings, got {dict(transform)!r}")
        for name in set(transform) - {"class"}:
            if not isinstance(transform[name], Mapping):
                raise InputError(f"{name} of the transform must be an object, got {transform[name]!r}")

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON holds them: tuples become lists."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "TrainingConfig":
        known = {field.name for field in dataclasses.fields(cls)}
        if set(fields) - known:
            raise InputError(f"no training setting is called {sorted(set(fields) - known)}; there are {sorted(known)}")
        values = dict(fields)
        try:
            if "milestones" in values:
                values["milestones"] = tuple(values["milestones"])
            return cls(**values)
        except TypeError as error:
            raise InputError(f"these training settings cannot be used: {error}") from error

    def with_settings(self, assignments: list[str]) -> "TrainingConfig":
        """This config with `field=value` assignments, values written as JSON (a bare word is text)."""
        fields = self.to_json()
        for assignment in assignments:
            name, equals, text = assignment.partition("=")
            if not equals or name not in fields:
                raise InputError(f"got {assignment!r}, wanted field=value with a field of {sorted(fields)}")
            try:
                value = json.loads(text)
            except ValueError:
                value = text
            if isinstance(fields[name], float) and isinstance(value, int) and not isinstance(value, bool):
                value = float(value)
            kind = MAY_BE_NULL.get(name, type(fields[name]))
            if type(value) is not kind and not (value is None and name in MAY_BE_NULL):
                like = "" if fields[name] is None else f", like {_short(fields[name])}"
                raise InputError(f"{name} must be of type {kind.__name__}{like}, got {text!r}")
            fields[name] = value
        return TrainingConfig.from_json(fields)

    def changes(self, before: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
        """The fields in which this config differs from the one of a run: name, value then, value now.

        A field that the run does not name had its default: there was no such setting when it began.
        """
        defaults = {
            field.name: field.default for field in dataclasses.fields(self) if field.default is not dataclasses.MISSING
        }
        return list(_changes(json.loads(json.dumps(defaults)) | dict(before), self.to_json()))

    def refuse_changes(self, before: Mapping[str, Any]) -> None:
        """Raise InputError that names every field in which this config differs from the one of a run."""
        changed = self.changes(before)
        if changed:
            told = "; ".join(f"{name} was {_short(old)} and is {_short(new)}" for name, old, new in changed)
            raise InputError(f"the run was started with other settings: {told}. Use them again, or a new folder")


def _changes(before: Any, now: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two configs differ: the name of the field, with those it lies in, what it was and what it is."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted(before.keys() | now.keys()):
            yield from _changes(before.get(key), now.get(key), f"{name}.{key}" if name else key)
    elif before != now:
        yield name, before, now


def _short(value: Any) -> str:
    text = repr(value)  # a codebook has hundreds of colours
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
