"""What the rows of a ledger say: accuracies with their intervals. Reading only; no model runs here."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.evaluation.intervals import clopper_pearson
from linocut.evaluation.ledger import canonical, read_rows
from linocut.evaluation.rows import Row
from linocut.evaluation.sample import Sample


@dataclass(frozen=True)
class Share:
    """So many of n; never shown without n and the 95 % interval."""

    count: int
    n: int

    @property
    def percent(self) -> float:
        return 100 * self.count / self.n if self.n else float("nan")

    @property
    def decimals(self) -> int:
        """How many places of the percentage a sentence gives: one image of thousands is less than a tenth."""
        return 2 if self.n > 1000 else 1

    @property
    def interval(self) -> tuple[float, float]:
        low, high = clopper_pearson(self.count, self.n)
        return 100 * low, 100 * high

    def as_json(self) -> dict[str, Any]:
        low, high = self.interval
        return {"percent": round(self.percent, 4), "count": self.count, "n": self.n, "low": low, "high": high}

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.percent:.2f} % [{low:.2f}, {high:.2f}] of {self.n}"


class Record:
    """A ledger's header and rows, ready to be asked."""

    def __init__(self, header: dict[str, Any], rows: Iterable[Row]):
        self.settings: dict[str, Any] = header["settings"]
        self.entries: dict[str, dict[str, Any]] = header["entries"]
        self.made_with: dict[str, Any] = header["made_with"]
        self.packed: dict[str, Any] | None = header.get("packed")
        self.rows = canonical(rows, self.entries)
        self.of: dict[str, dict[int, Row]] = {name: {} for name in self.entries}
        for row in self.rows:
            self.of[row.entry][row.example] = row

    @classmethod
    def read(cls, folder: Path) -> "Record":
        """The record of a ledger's folder."""
        header, rows = headers.read(folder), read_rows(folder)
        unknown = {row.entry for row in rows} - header["entries"].keys()
        if unknown:
            raise InputError(f"{folder} has rows of {min(unknown)}, which its header does not name: it is damaged")
        return cls(header, rows)

    @cached_property
    def sample(self) -> Sample:
        """Which examples were to be judged, in their order."""
        return Sample(**{name: self.settings[name] for name in ("size", "n", "batch_size", "seed")})

    @property
    def norms(self) -> dict[str, float]:
        """The radius of each judged norm."""
        return self.settings["radii"]

    def names(self, **wanted: Any) -> list[str]:
        """The entries that have these values: names(norm="linf", column="published"); missing ones too."""
        return [name for name, entry in self.entries.items() if wanted.items() <= entry.items()]

    def ran(self, name: str) -> bool:
        """Whether the entry has rows that say something.

        One row that says "not applicable" speaks for all: a batch with nobody to attack never asks the model.
        """
        rows = self.of.get(name, {}).values()
        return bool(rows) and all(row.applicable for row in rows)

    @property
    def clean(self) -> Share:
        rows = self.of["clean"].values()
        return Share(sum(row.prediction == row.label for row in rows), len(rows))

    def wrong(self) -> set[int]:
        """The examples that are misclassified with no attack at all."""
        return {row.example for row in self.of["clean"].values() if row.prediction != row.label}

    def after(self, name: str, among: Iterable[int] | None = None) -> Share:
        """The accuracy under one entry, over the examples it ran on (and that are among these)."""
        rows = [self.of[name][e] for e in (self.of[name] if among is None else among) if e in self.of[name]]
        return Share(sum(row.prediction == row.label for row in rows), len(rows))

    def counting(self, norm: str, **wanted: Any) -> list[str]:
        """The entries whose successes count in a norm: any that stayed inside its ball.

        Not a search in whole levels, which only meets what is broken already and may be in a rounded ball.
        """
        names = [name for name in self.names(norm=norm, **wanted) if self.entries[name]["kind"] != "levels"]
        return [name for name in names if self.entries[name]["eps"] <= self.norms[norm]]

    def broken_by(self, names: Iterable[str]) -> set[int]:
        """The examples that at least one of these entries broke."""
        return {row.example for name in names for row in self.of[name].values() if row.broken}

    def worst(self, norm: str, among: Iterable[int] | None = None) -> Share:
        """The accuracy per example over everything: right at first, and broken by nothing inside the ball."""
        examples = set(self.of["clean"]) if among is None else set(self.of["clean"]) & set(among)
        return Share(len(self.standing(norm) & examples), len(examples))

    def standing(self, norm: str) -> set[int]:
        """The examples that hold in the worst case."""
        return set(self.of["clean"]) - self.wrong() - self.broken_by(self.counting(norm))

    def published(self, norm: str) -> dict[str, Share]:
        """The accuracy under each as-published attack, by entry."""
        return {name: self.after(name) for name in self.names(norm=norm, column="published") if self.ran(name)}

    def white_box(self, norm: str) -> str:
        """The paper's white-box attack, by entry: the loop of Chen et al. where it ran, else the published PGD."""
        theirs = f"{norm}/chen-published"
        return theirs if theirs in self.published(norm) else f"{norm}/pgd-published"


def lost(records: Iterable[Record], norm: str) -> set[int]:
    """The examples that a model gets wrong, or that something which counts broke in any of its ledgers."""
    return set[int]().union(*(record.wrong() | record.broken_by(record.counting(norm)) for record in records))
