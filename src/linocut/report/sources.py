"""Ledgers found in folders and read into subjects: what the page speaks about, checked before it is believed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.evaluation.closeness import are_alike
from linocut.evaluation.findings import FAIL, OK, WARN, Finding, find
from linocut.evaluation.ledger import ROWS, is_finished, merged_file
from linocut.evaluation.missing import missing
from linocut.evaluation.record import Record
from linocut.report.accuracy import PUBLISHED, SAME, WORST, Line, accuracies
from linocut.report.identity import Identity, identify

KINDS: dict[str, headers.Kinds] = {"suite": (str,), "dimensions": (int,), "classes": (list,), "n": (int,)}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One ledger: its record, what it says of the model, and its findings (none while the run is unfinished).

    `model` names the model on this page; `name` also the ledger, where the model has several.
    """

    folder: Path
    name: str
    model: str
    identity: Identity
    record: Record
    findings: tuple[Finding, ...]
    lines: tuple[Line, ...]
    unfinished: bool

    @property
    def worst_status(self) -> str:
        """fail, warn or ok, whichever is the worst among the findings; unfinished before there are any."""
        if self.unfinished:
            return "unfinished"
        statuses = {finding.status for finding in self.findings}
        return next((status for status in (FAIL, WARN) if status in statuses), OK)

    def line(self, column: str, norm: str | None = None, attack: str | None = None) -> Line | None:
        """The first line of a column, in a norm, of an attack."""
        here = (line for line in self.lines if (line.column, line.norm) == (column, norm))
        return next((line for line in here if attack in (None, line.attack)), None)

    def headline(self, norm: str) -> tuple[Line | None, Line | None, Line | None]:
        """Of a norm: the published attack, the worst case on the same examples if those are fewer, the worst case.

        Where an attack met some examples only and leaves clearly fewer of them, the worst case is that of these: the
        others would count as standing against an attack that they never met.
        """
        published = self.line(PUBLISHED, norm, self.identity.published_attack) or self.line(PUBLISHED, norm)
        same = self.line(SAME, norm, published.attack) if published else None
        worst = self.line(WORST, norm)
        fewer = [
            line
            for line in self.lines
            if (line.column, line.norm) == (SAME, norm) and worst and line.share.interval[1] < worst.share.percent
        ]
        return published, same, min(fewer, key=lambda line: line.share.percent, default=worst)

    @property
    def n(self) -> int:
        """How many images were judged."""
        return self.record.clean.n

    @property
    def label(self) -> str:
        """What tells it from other ledgers of its model."""
        return self.folder.name.removeprefix("ledger-") or self.folder.name

    @property
    def about(self) -> str:
        """The same for all ledgers of one model on one data set, in the same balls.

        A model without a card may be a function, of which a hash says little: there its name counts too.
        """
        settings = self.record.settings
        model = settings.get("model_hash") or str(self.folder)  # where it is not known, no other's
        told = [model, *(settings.get(name) for name in ("preprocess", "data_hash", "split", "radii"))]
        if self.record.made_with.get("card") is None:
            told.append(settings.get("model"))
        return repr(told)

    def agrees(self, other: "Subject") -> bool:
        """Whether both may be of one model: of one with a card its hash says so, of another what it answers.

        Another machine may decide a few images otherwise.
        """
        if self.record.made_with.get("card") is not None:
            return True
        said = [each.record.made_with.get("answers") for each in (self, other)]
        of_the_same = self.record.settings.get("seed") == other.record.settings.get("seed")  # the first images are
        if of_the_same and not are_alike(*said):
            return False
        mine, theirs = (subject.record.of["clean"] for subject in (self, other))
        both = mine.keys() & theirs.keys()
        return sum(mine[e].prediction != theirs[e].prediction for e in both) <= len(both) / 100

    @property
    def sample(self) -> tuple[Any, ...]:
        """What two ledgers must share before their lines can be compared: images, which of them, and radii."""
        settings = self.record.settings
        radii = tuple(sorted(self.record.norms.items()))
        return (*(settings.get(key) for key in ("data", "data_hash", "split", "n", "seed")), radii)


def read_all(folders: Sequence[Path]) -> list[Subject]:
    """The subjects of these folders, in their order; a folder may hold one ledger or several below it."""
    given = [folder for folder in folders if not _is_stamp(folder)] or list(folders)
    found: dict[Path, Path] = {}
    for ledger in (ledger for folder in given for ledger in _ledgers(folder)):
        found.setdefault(ledger.resolve(), ledger)
    return _told_apart([_read(folder) for folder in found.values()])


def _is_stamp(path: Path) -> bool:
    """Whether it is what a reproduction lays beside a ledger, which ledger-* names too."""
    return path.name.endswith(".stamp.json") and path.is_file()


def _ledgers(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: wanted one that `linocut evaluate` wrote")
    if (folder / headers.NAME).exists():
        return [folder]
    below = sorted(path.parent for path in folder.rglob(headers.NAME))
    if not below:
        raise InputError(f"{folder} holds no ledger ({headers.NAME} is not there): run `linocut evaluate` first")
    return below


def _read(folder: Path) -> Subject:
    headers.require_sound(headers.read(folder), folder, KINDS)
    record = Record.read(folder)
    _check_whole(record, folder)
    unfinished = not is_finished(folder) or not record.of["clean"]
    identity = identify(record)
    return Subject(
        folder=folder,
        name=identity.name,
        model=identity.name,
        identity=identity,
        record=record,
        findings=() if unfinished else tuple(find(record)),
        lines=accuracies(record, identity),
        unfinished=unfinished,
    )


def _check_whole(record: Record, folder: Path) -> None:
    """InputError if the rows of a finished run have lost their end: what is missing would count as standing."""
    rows = merged_file(folder)
    if rows is None or not is_finished(folder):
        return
    clean, n = len(record.of["clean"]), record.settings.get("n")
    if clean != n or (rows.name == ROWS and not rows.read_bytes().endswith(b"\n")):
        raise InputError(f"{rows} is damaged: it has {clean} of {n} examples, or its last line is cut short")
    known = record.settings.keys() >= {"size", "n", "batch_size", "seed"}
    for name, count in (missing(record) if known else {}).items():
        raise InputError(f"{rows} is damaged: {count} examples that must have met {name} have no row of it")


def _told_apart(subjects: list[Subject]) -> list[Subject]:
    """The same, under names that differ: models first, then the ledgers of each."""
    firsts: dict[str, Subject] = {}
    for subject in subjects:
        firsts.setdefault(subject.about, subject)
    ledgers = Counter(subject.about for subject in subjects)
    models = dict(zip(firsts, _model_names(list(firsts.values()), ledgers), strict=True))
    names = [
        models[subject.about] + (f" ({subject.label})" if ledgers[subject.about] > 1 else "") for subject in subjects
    ]
    return [
        replace(subject, name=name, model=models[subject.about])
        for subject, name in zip(subjects, _numbered(names), strict=True)
    ]


def _model_names(firsts: Sequence[Subject], ledgers: Counter[str]) -> list[str]:
    """A name for each of these models: with the seed of training where that tells two apart, with the folder of its
    only ledger where they still agree, and a number where that is not enough.
    """
    seeds: dict[str, set[int | None]] = {}
    for subject in firsts:
        seeds.setdefault(subject.identity.name, set()).add(subject.identity.seed)
    seeded = [
        subject.identity.name
        + (
            f", seed {subject.identity.seed}"
            if len(seeds[subject.identity.name]) > 1 and subject.identity.seed is not None
            else ""
        )
        for subject in firsts
    ]
    often = Counter(seeded)
    return _numbered(
        [
            name + (f" ({subject.label})" if often[name] > 1 == ledgers[subject.about] else "")
            for name, subject in zip(seeded, firsts, strict=True)
        ]
    )


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, with a number after those that occur again."""
    again, seen = Counter(names), Counter[str]()
    told = []
    for name in names:
        seen[name] += 1
        told.append(name + (f" #{seen[name]}" if again[name] > 1 else ""))
    return told
