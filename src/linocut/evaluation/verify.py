"""Replays the kept adversarial images: a ledger's claims, checked with the model alone."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.evaluation import shards
from linocut.evaluation.balls import holds
from linocut.evaluation.case import Model, at_rest, decide, model_hash, unit
from linocut.evaluation.closeness import is_close
from linocut.evaluation.contradictions import contradictions
from linocut.evaluation.ledger import is_finished
from linocut.evaluation.missing import missing
from linocut.evaluation.pictures import Pictures
from linocut.evaluation.record import Record
from linocut.evaluation.request import card_of, device_of, is_function, open_model
from linocut.evaluation.rows import Row
from linocut.evaluation.wrapped import Expectation

KINDS: dict[str, headers.Kinds] = {
    "model": (str,),
    "model_hash": (str,),
    "preprocess": (str, type(None)),
    "draws": (int,),
    "size": (int,),
    "n": (int,),
    "batch_size": (int,),
    "seed": (int,),
}


@dataclass(kw_only=True)
class Verification:
    """How many claims there were, what is wrong with those that failed, and how many a packed ledger left out.

    close: claims that come out otherwise here, but by so little that another machine's rounding decides.
    unfinished: whether the run has not come to its end, so that there will be more.
    """

    claims: int = 0
    confirmed: int = 0
    failures: list[str] = field(default_factory=list)
    close: list[str] = field(default_factory=list)
    left_out: int = 0
    unfinished: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def replay(folder: Path, place: str | None = None, device_name: str | None = None) -> Verification:
    """The verification of a ledger with the model it names, or the one at another place."""
    device = device_of(device_name)
    return verify(folder, judge_of(folder, device, place), device)


def judge_of(folder: Path, device: torch.device, place: str | None = None) -> Model:
    """The model of a ledger, as it decides there: a saved one is known by its card, any other by its hash."""
    header = headers.read(folder)
    headers.require_sound(header, folder, KINDS)
    settings, named = header["settings"], place is not None
    if place is None and str(settings["model"]).endswith(headers.IN_MEMORY):
        raise InputError(
            f"{folder} judged a {settings['model']}: name it with --model module:function, or use verdict.verify()"
        )
    if str(settings["preprocess"]).endswith(headers.IN_MEMORY):
        raise InputError(f"{folder} judged a model behind a {settings['preprocess']}: use verdict.verify() in Python")
    place = place or headers.model_of(folder, header)
    _, first = next(Pictures(folder, header).natural(), (0, None))
    if first is None:
        raise InputError(f"{folder} keeps no natural images: its rows claim images that were not kept")
    model = open_model(place, device, first["pixels"][:2], settings["preprocess"])
    card = header["made_with"].get("card")
    known = card is not None and not is_function(place) and card_of(place) == card  # it holds the weights' hash
    if not known and model_hash(model, unit(first["pixels"][:2].to(device))) != settings["model_hash"]:
        advice = "give --model the one that was judged" if named else "name it with --model"
        raise InputError(f"{place} is not the model of this ledger (its hash is another): {advice}")
    return Expectation(model, settings["draws"]) if settings["draws"] > 1 else model


def verify(folder: Path, model: Model, device: torch.device, record: Record | None = None) -> Verification:
    """Whether the image of every row that says "broken" is there, unaltered, inside the ball and misclassified.

    An image that breaks the model fails too where its row denies it.
    A row that contradicts itself or the clean one fails too, and so does one that is missing in a finished ledger,
    though they are not counted as claims: accuracies are reckoned from rows. Of a packed ledger only the images it
    keeps are asked for. `record` saves reading it again.
    """
    pictures, record, outcome = Pictures.of(folder), record or Record.read(folder), Verification()
    with at_rest(model):
        natural, batch_of = _natural(pictures, record, model, device, outcome)
        for norm, name, rows in claims(record, None if record.packed is None else natural):
            by_batch: dict[int, list[Row]] = defaultdict(list, {batch: [] for batch in pictures.batches(name)})
            for row in rows:
                by_batch[batch_of.get(row.example, -1)].append(row)
            held = {example: row.label for example, row in record.of[name].items() if not row.broken}
            threat = ThreatModel(norm, record.entries[name]["eps"])  # type: ignore[arg-type]
            for batch, some in sorted(by_batch.items()):
                _check(pictures, name, batch, some, held, natural, threat, model, device, outcome)
    outcome.failures += contradictions(record, None if record.packed is None else natural)
    outcome.unfinished = not is_finished(folder)
    if not outcome.unfinished:
        outcome.failures += [
            f"{name}: {count} examples that must have met it have no row of it; rows were removed"
            for name, count in missing(record).items()
        ]
    elif not record.rows:
        outcome.failures.append("there are no rows")
    if record.packed is not None:
        outcome.left_out = record.packed["left_out"]
        if outcome.claims != record.packed["claims"]:
            outcome.failures.append(f"there are {outcome.claims} claims, {record.packed['claims']} were packed")
        if len(record.rows) != record.packed.get("rows", len(record.rows)):
            outcome.failures.append(f"there are {len(record.rows)} rows, {record.packed['rows']} were packed")
    return outcome


def claims(record: Record, among: Any = None) -> Iterator[tuple[str, str, list[Row]]]:
    """Norm, entry and the rows that claim a kept image: broken inside the entry's ball; of these examples, if given."""
    for norm in record.norms:
        for name in [*record.counting(norm), *record.names(norm=norm, kind="levels")]:
            probe = record.entries[name]["column"] == "probe"
            rows = [row for row in record.of[name].values() if row.broken and (row.image or not probe)]
            yield norm, name, rows if among is None else [row for row in rows if row.example in among]


def _natural(pictures: Pictures, record: Record, model: Model, device: torch.device, outcome: Verification):
    """The natural images by example, and their batches; a clean prediction that the model does not repeat fails."""
    natural, batch_of = {}, {}
    for number, shard in pictures.natural():
        guesses, logits = (found.cpu() for found in decide(model, unit(shard["pixels"].to(device))))
        examples = shard["example"].tolist()
        for example, label, pixels, guess, scores in zip(
            examples, shard["label"].tolist(), shard["pixels"], guesses.tolist(), logits, strict=True
        ):
            natural[example], batch_of[example] = pixels, number
            row = record.of["clean"].get(example)
            if row is not None:
                outcome.claims += 1
                if (row.label, row.prediction) == (label, guess):
                    outcome.confirmed += 1
                else:
                    close = row.label == label and is_close(scores, guess, row.prediction)
                    (outcome.close if close else outcome.failures).append(
                        f"clean, example {example}: the ledger says label {row.label} and prediction {row.prediction}, "
                        f"the kept image has {label} and the model says {guess}"
                    )
    return natural, batch_of


def _check(pictures: Pictures, name, batch, rows, held, natural, threat, model, device, outcome: Verification) -> None:
    """Asks the model about a shard: the rows that claim an image of it, and those (`held`, by label) that deny one."""
    missing = "its image was not kept"
    try:
        shard = pictures.adversarial(name, batch)
    except InputError:
        shard, missing = None, "its image cannot be read: the file is damaged"
    shard = shard or {"example": torch.empty(0), "image": torch.empty(0, 1, 1, 1)}
    place = {example: i for i, example in enumerate(shard["example"].tolist())}
    # The whole shard is one batch, as it was when the rows were made, so that the last bits agree.
    none = torch.empty(0, dtype=torch.int64)
    guesses, logits = (found.cpu() for found in (decide(model, shard["image"].to(device)) if place else (none, none)))
    there = [row for row in rows if row.example in place]
    images = shard["image"][[place[row.example] for row in there]]
    starts = torch.stack([natural[row.example] for row in there]) if there else images
    inside = dict(zip((row.example for row in there), holds(threat, images, unit(starts)).tolist(), strict=True))
    for row in rows:
        outcome.claims += 1
        at, reason, close = place.get(row.example), None, False
        if at is None:
            reason = missing
        elif shards.digest(shard["image"][at]) != row.image:
            reason = "its image is not the one the row was made with"
        elif not inside[row.example]:
            reason = f"its image lies outside the ball of {threat.eps:.6g}"
        elif guesses[at] == row.label:
            reason, close = "the model classifies its image rightly", _leads_by_little(logits[at], row.label)
        if reason is None:
            outcome.confirmed += 1
        else:
            (outcome.close if close else outcome.failures).append(f"{name}, example {row.example}: {reason}")
    for example, at in place.items():
        label = held.get(example)
        if label is None or example not in natural or guesses[at] == label:
            continue  # most were saved by a second look
        image, start = shard["image"][at : at + 1], unit(natural[example][None])
        if bool(holds(threat, image, start).all()) and not is_close(logits[at], int(guesses[at]), label):
            outcome.failures.append(f"{name}, example {example}: its image breaks the model, and its row denies it")


def _leads_by_little(scores: torch.Tensor, label: int) -> bool:
    """Whether the next class is so near that another machine may choose it.

    Which class the row names does not matter: a packed image may be taken for another than the one it was rounded from.
    """
    others = scores.clone()
    others[label] = -torch.inf
    return is_close(scores, label, int(others.argmax()))
