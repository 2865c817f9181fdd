"""Which attack broke how many: each lost example is counted for the first entry that broke it."""

from dataclasses import dataclass

from linocut.evaluation.record import Record

WRONG = "wrong at first"


@dataclass(frozen=True, kw_only=True)
class Fall:
    """So many examples lost to one entry, and how many still stand after it."""

    name: str
    column: str
    lost: int
    standing: int


def falls(record: Record, norm: str) -> list[Fall]:
    """The losses in the order of the suite, those of no attack first; entries that took nobody are left out."""
    standing = set(record.of["clean"])
    steps = [("clean", record.wrong())]
    steps += [(name, record.broken_by([name])) for name in record.counting(norm)]
    found = []
    for name, broken in steps:
        lost = standing & broken
        standing -= lost
        if lost:
            told = WRONG if name == "clean" else name.partition("/")[2]
            column = record.entries[name]["column"]
            found.append(Fall(name=told, column=column, lost=len(lost), standing=len(standing)))
    return found


def took_nobody(record: Record, norm: str) -> list[str]:
    """The entries that ran and broke nobody who was still standing."""
    found = {fall.name for fall in falls(record, norm)}
    names = [name for name in record.counting(norm) if record.ran(name)]
    return [short for short in (name.partition("/")[2] for name in names) if short not in found]
