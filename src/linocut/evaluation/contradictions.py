"""Rows of a ledger that cannot all be true, whatever the model says: a figure made of them would be false."""

from collections.abc import Container, Iterator

from linocut.evaluation.record import Record
from linocut.evaluation.rows import Row


def contradictions(record: Record, imaged: Container[int] | None = None) -> list[str]:
    """What each attack's row says that its own fields, its clean row or the other rows deny.

    imaged: the examples whose adversarial images are kept; None for all.
    """
    told = [
        f"{row.entry}, example {row.example}: {reason}"
        for row in record.rows
        if record.entries[row.entry]["norm"] is not None
        for reason in _of_row(row, record.of["clean"].get(row.example))
    ]
    return [*told, *_without_image(record, imaged)]


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
