"""A model and its finished ledgers: one line of the page, whose worst case is that of all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from linocut.evaluation.findings import FAIL, OK, WARN
from linocut.evaluation.record import Share, lost
from linocut.report.accuracy import CLEAN, PUBLISHED, SAME, WORST, Line
from linocut.report.identity import Identity
from linocut.report.sources import Subject


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One model, on one data set and in the same balls, by ledgers that all judged the images of the longest one."""

    name: str
    ledgers: tuple[Subject, ...]

    @property
    def identity(self) -> Identity:
        return self.ledgers[0].identity

    @property
    def norms(self) -> dict[str, float]:
        return self.ledgers[0].record.norms

    @property
    def unfinished(self) -> bool:
        return self.ledgers[0].unfinished  # such a one is alone

    @property
    def worst_status(self) -> str:
        """The worst of what its ledgers have."""
        statuses = {ledger.worst_status for ledger in self.ledgers}
        return next((status for status in ("unfinished", FAIL, WARN) if status in statuses), OK)

    @property
    def failed(self) -> list[str]:
        """The checks that fail in any ledger."""
        findings = (finding for ledger in self.ledgers for finding in ledger.findings)
        return sorted({finding.code for finding in findings if finding.status == FAIL})

    @property
    def widest(self) -> Subject:
        """The ledger with the most images."""
        return max(self.ledgers, key=lambda ledger: ledger.n)

    @property
    def longest(self) -> Subject:
        return _longest(self.ledgers)

    @property
    def n(self) -> int:
        """How many images were judged by any ledger."""
        return self.widest.n

    @property
    def clean(self) -> Line | None:
        return self.widest.line(CLEAN)

    def standing(self, norm: str) -> set[int]:
        """Of the images of the longest ledger those that nothing in any ledger broke."""
        return set(self.longest.record.of["clean"]) - self._lost[norm]

    @cached_property
    def _lost(self) -> dict[str, set[int]]:
        return {norm: lost([ledger.record for ledger in self.ledgers], norm) for norm in self.norms}

    def headline(self, norm: str) -> tuple[Line | None, Line | None, Line | None]:
        """As a ledger has it; of several the published attack on the most images, and the worst case of all."""
        if len(self.ledgers) == 1:
            return self.ledgers[0].headline(norm)
        published = [line for line in self.lines if (line.column, line.norm) == (PUBLISHED, norm)]
        published.sort(key=lambda line: line.attack != self.identity.published_attack)
        worst = next(line for line in self.lines if (line.column, line.norm) == (WORST, norm))
        return next(iter(published), None), None, worst

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All accuracies; of several ledgers each once, on the most images."""
        if len(self.ledgers) == 1:
            return self.ledgers[0].lines
        return tuple(line for line in (self.clean, *(line for norm in self.norms for line in self._of(norm))) if line)

    def _of(self, norm: str) -> list[Line]:
        """The lines of a norm: each published attack on the most images, and the worst case."""
        widest_first = sorted(self.ledgers, key=lambda ledger: -ledger.n)
        found: dict[str | None, list[Line]] = {}
        for ledger in widest_first:
            for line in ledger.lines:
                if (line.column, line.norm) == (PUBLISHED, norm) and line.attack not in found:
                    found[line.attack] = [line, *self._on_the_same(ledger, line)]
        n, eps = self.longest.n, self.norms[norm]
        worst = Line(column=WORST, share=Share(len(self.standing(norm)), n), norm=norm, eps=eps)
        return [*(line for lines in found.values() for line in lines), worst]

    def _on_the_same(self, ledger: Subject, line: Line) -> list[Line]:
        """The worst case on the images of a published attack that met fewer than the worst case is of."""
        if line.share.n >= self.longest.n:
            return []
        images = set(ledger.record.of[f"{line.norm}/{line.attack}"])
        left = Share(len(images - self._lost[line.norm or ""]), len(images))
        return [Line(column=SAME, share=left, norm=line.norm, eps=line.eps, attack=line.attack)]


def together(subjects: Sequence[Subject]) -> list[Judged]:
    """The models that these ledgers are about, in the order in which they come up.

    A ledger that is unfinished, or whose images are not those of the others, has a line of its own.
    """
    found: dict[str, list[Subject]] = {}
    for subject in subjects:
        found.setdefault(subject.about, []).append(subject)
    groups = [group for ledgers in found.values() for group in _that_go_together(ledgers)]
    order = {id(subject): place for place, subject in enumerate(subjects)}
    groups.sort(key=lambda group: order[id(group[0])])
    lines = [group[0].about for group in groups]
    return [
        Judged(name=group[0].model if lines.count(group[0].about) == 1 else group[0].name, ledgers=tuple(group))
        for group in groups
    ]


def _that_go_together(ledgers: Sequence[Subject]) -> list[list[Subject]]:
    """The finished ledgers that judged every image of the longest, and as it did; each of the others by itself."""
    finished = [ledger for ledger in ledgers if not ledger.unfinished]
    if len(finished) < 2:
        return [[ledger] for ledger in ledgers]
    longest = _longest(finished)
    images = longest.record.of["clean"].keys()
    group = [ledger for ledger in finished if images <= ledger.record.of["clean"].keys() and ledger.agrees(longest)]
    return [group, *([ledger] for ledger in ledgers if ledger not in group)]


def _longest(ledgers: Sequence[Subject]) -> Subject:
    """The ledger with the most attacks, then with the most images.

    The worst case of a short suite is no worst case where a longer one was run.
    """
    return max(ledgers, key=lambda ledger: (_attacks(ledger), ledger.n))


def _attacks(ledger: Subject) -> int:
    return sum(len(ledger.record.counting(norm)) for norm in ledger.record.norms)
