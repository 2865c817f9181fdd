"""Replays the kept adversarial images: a ledger's claims, checked with the model alone."""

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.evaluation import shards
from linocut.evaluation.balls import holds
from linocut.evaluation.case import Model, at_rest, model_hash, predict, unit
from linocut.evaluation.record import Record
from linocut.evaluation.request import device_of, open_model
from linocut.evaluation.rows import Row
from linocut.evaluation.wrapped import Expectation


@dataclass(kw_only=True)
class Verification:
    """How many claims there were, and what is wrong with those that failed."""

    claims: int = 0
    confirmed: int = 0
    failures: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def replay(folder: Path, place: str | None = None, device_name: str | None = None) -> Verification:
    """The verification of a ledger with the model it names, or the one at another place."""
    settings, device = headers.read(folder)["settings"], device_of(device_name)
    first = shards.read(shards.path_of(folder, "images", "natural", 0))
    model = open_model(place or settings["model"], device, settings["preprocess"], first["pixels"][:2])
    if model_hash(model) != settings["model_hash"]:
        raise InputError(
            f"{place or settings['model']} is not the model of this ledger (its hash is another): name it with --model"
        )
    return verify(folder, Expectation(model, settings["draws"]) if settings["draws"] > 1 else model, device)


def verify(folder: Path, model: Model, device: torch.device) -> Verification:
    """Whether the image of every row that says "broken" is there, unaltered, inside the ball and misclassified."""
    record, outcome = Record.read(folder), Verification()
    with at_rest(model):
        natural, batch_of = _natural(folder, record, model, device, outcome)
        for norm in record.norms:
            for name in record.counting(norm):
                by_batch: dict[int, list[Row]] = defaultdict(list)
                for row in record.of[name].values():
                    if row.broken and (row.image or record.entries[name]["column"] != "probe"):
                        by_batch[batch_of.get(row.example, -1)].append(row)
                threat = ThreatModel(norm, record.entries[name]["eps"])  # type: ignore[arg-type]
                for batch, rows in sorted(by_batch.items()):
                    _check(folder, name, batch, rows, natural, threat, model, device, outcome)
    return outcome


def _natural(folder: Path, record: Record, model: Model, device: torch.device, outcome: Verification):
    """The natural images by example, and their batches; a clean prediction that the model does not repeat fails."""
    natural, batch_of = {}, {}
    for path in sorted((folder / "images" / "natural").glob("*.safetensors")):
        shard = shards.read(path)
        guesses = predict(model, unit(shard["pixels"].to(device))).tolist()
        examples = shard["example"].tolist()
        for example, label, pixels, guess in zip(
            examples, shard["label"].tolist(), shard["pixels"], guesses, strict=True
        ):
            natural[example], batch_of[example] = pixels, int(path.stem)
            row = record.of["clean"].get(example)
            if row is not None:
                outcome.claims += 1
                if (row.label, row.prediction) == (label, guess):
                    outcome.confirmed += 1
                else:
                    outcome.failures.append(
                        f"clean, example {example}: the ledger says label {row.label} and prediction {row.prediction}, "
                        f"the kept image has {label} and the model says {guess}"
                    )
    return natural, batch_of


def _check(folder, name, batch, rows, natural, threat, model, device, outcome: Verification) -> None:
    path = shards.path_of(folder, "images", name, batch)
    shard = shards.read(path) if path.exists() else {"example": torch.empty(0), "image": torch.empty(0)}
    place = {example: i for i, example in enumerate(shard["example"].tolist())}
    # The whole shard is one batch, as it was when the rows were made, so that the last bits agree.
    guesses = predict(model, shard["image"].to(device)).tolist() if place else []
    for row in rows:
        outcome.claims += 1
        at = place.get(row.example)
        reason = "its image was not kept" if at is None else None
        if at is not None:
            image, start = shard["image"][at], natural[row.example]
            if shards.digest(image) != row.image:
                reason = "its image is not the one the row was made with"
            elif not bool(holds(threat, image[None], unit(start)[None])):
                reason = f"its image lies outside the ball of {threat.eps:.6g}"
            elif guesses[at] == row.label:
                reason = "the model classifies its image rightly"
        if reason is None:
            outcome.confirmed += 1
        else:
            outcome.failures.append(f"{name}, example {row.example}: {reason}")
