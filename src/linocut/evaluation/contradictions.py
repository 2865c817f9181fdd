"""Rows of a ledger that cannot all be true, whatever the model says: a figure made of them would be false."""

from collections.abc import Container, Iterator
from typing import Any

from linocut.attacks.dice import example_seed
from linocut.evaluation.entry import digest
from linocut.evaluation.record import Record
from linocut.evaluation.rows import Row
from linocut.evaluation.sample import Sample

BEYOND, SLACK = 1.001, 1e-6  # times a radius, and more: a distance is measured in float32, as balls.holds allows for


def contradictions(record: Record, imaged: Container[int] | None = None) -> list[str]:
    """What each attack's row says that its own fields, its clean row, the other rows or the header deny.

    imaged: the examples whose adversarial images are kept; None for all.
    """
    told = [
        f"{row.entry}, example {row.example}: {reason}"
        for row in record.rows
        if record.entries[row.entry]["norm"] is not None
        for reason in _of_row(row, record.of["clean"].get(row.example))
    ]
    return [*_of_header(record), *_of_settings(record), *told, *_without_image(record, imaged)]


def _of_header(record: Record) -> Iterator[str]:
    for name, entry in record.entries.items():
        if digest({field: value for field, value in entry.items() if field != "config"}) != entry["config"]:
            yield f"{name}: its settings in the header are not those it ran with"
    for norm, radius in record.norms.items():
        if {record.entries[name]["eps"] for name in record.names(norm=norm, column="published")} - {radius}:
            yield f"{norm}: the header judges a radius of {radius:.6g}, and the published attack had another"


def _of_settings(record: Record) -> Iterator[str]:
    """Rows of examples outside the sample, or made with other settings than the header's; one sentence an entry."""
    astray: dict[tuple[str, str], list[int]] = {}
    for row in record.rows:
        for reason in _astray(row, record.entries[row.entry], record.sample):
            astray.setdefault((row.entry, reason), []).append(row.example)
    for (name, reason), examples in astray.items():
        more = f", and so do {len(examples) - 1} more" if len(examples) > 1 else ""
        yield f"{name}, example {examples[0]}: its row {reason}{more}"


def _astray(row: Row, entry: dict[str, Any], sample: Sample) -> Iterator[str]:
    if row.example not in sample.position:
        yield "is of an example that the header's sample does not have"
    if row.config != entry["config"]:
        yield "was made with other settings than the header's"
    if row.seed != example_seed(sample.seed, row.example, row.entry):
        yield "has a seed that is not its example's"
    if entry["eps"] is not None and not 0 <= row.distance <= entry["eps"] * BEYOND + SLACK:
        yield "says a distance beyond its ball"
    if not row.applicable and (row.broken or row.steps):
        yield "says that the attack does not apply, and what it did"


def _of_row(row: Row, clean: Row | None) -> Iterator[str]:
    if clean is None:
        yield "there is no clean row of it"
    elif (row.label, row.clean) != (clean.label, clean.prediction):
        yield (
            f"it says label {row.label} and clean prediction {row.clean}, "
            f"the clean row says {clean.label} and {clean.prediction}"
        )
    lost = row.clean == row.label != row.prediction
    if row.broken != lost:
        called = "broken" if row.broken else "not broken"
        yield f"it predicts {row.prediction} for label {row.label}, and is called {called}"
    if row.clean != row.label and row.prediction != row.clean:
        yield "it is misclassified with no attack at all, and has another prediction under attack"


def _without_image(record: Record, imaged: Container[int] | None) -> Iterator[str]:
    """A probe keeps no image of an example that is broken already: then another entry must have one."""
    for norm in record.norms:
        names = record.counting(norm)
        rows = [row for name in names for row in record.of[name].values() if row.broken]
        shown = {row.example for row in rows if row.image}
        for row in rows:
            if row.image is None and row.example not in shown and (imaged is None or row.example in imaged):
                yield f"{row.entry}, example {row.example}: no entry keeps an image that breaks it in {norm}"
