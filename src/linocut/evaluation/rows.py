"""One row of the ledger, and the one line of text that holds it."""

import json
import math
import zlib
from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """What one entry of the suite did to one example.

    `entry` is unique in the suite ("linf/pgd-ce-1"); `config` is the digest under which the header holds its
    settings. A prediction of -1 means that the logits name no class. `image` is the digest of the kept
    adversarial image. `measure` is the number a measurement took; an attack leaves it empty.
    """

    example: int
    label: int
    entry: str
    config: str
    seed: int
    applicable: bool = True
    clean: int
    prediction: int
    quantised: int | None = None  # the prediction in whole grey levels; only for broken rows
    broken: bool = False
    silent: bool = False
    loss_start: float | None = None
    loss_best: float | None = None
    loss_end: float | None = None
    distance: float = 0.0
    steps: int = 0
    queries: int = 0
    milliseconds: float = 0.0
    image: str | None = None
    measure: float | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.entry, self.example


FIELDS = tuple(field.name for field in fields(Row))
_NAMES = frozenset(FIELDS)


def to_line(row: Row) -> str:
    """The row as one line of JSON with a checksum of its text, newline included."""
    text = json.dumps({name: _plain(getattr(row, name)) for name in FIELDS}, separators=(",", ":"))
    return f'{text[:-1]},"check":"{zlib.crc32(text.encode()):08x}"}}\n'


def from_line(line: str) -> Row:
    """The row that `to_line` wrote; ValueError when the line is torn or altered."""
    text, mark, check = line.rstrip("\n").rpartition(',"check":"')
    if not mark or check != f'{zlib.crc32((text + "}").encode()):08x}"}}':
        raise ValueError("the line does not match its checksum")
    values = json.loads(text + "}")
    if values.keys() != _NAMES:
        raise ValueError(f"the fields are {sorted(values)}")
    return Row(**values)


def _plain(value: object) -> object:
    """JSON has no NaN or infinity: they become null, which says that there is no such number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
