"""A model and every ledger about it: one line of the page, whose worst case is that of all its ledgers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from linocut.evaluation.findings import FAIL, OK, WARN
from linocut.evaluation.record import Share
from linocut.report.accuracy import CLEAN, PUBLISHED, WORST, Line
from linocut.report.identity import Identity
from linocut.report.sources import Subject


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One model, on one data set and in the same balls, by all of its ledgers."""

    ledgers: tuple[Subject, ...]

    @property
    def name(self) -> str:
        return self.ledgers[0].model

    @property
    def identity(self) -> Identity:
        return self.ledgers[0].identity

    @property
    def norms(self) -> dict[str, float]:
        return self.ledgers[0].record.norms

    @property
    def unfinished(self) -> bool:
        return any(ledger.unfinished for ledger in self.ledgers)

    @property
    def worst_status(self) -> str:
        """The worst of what its ledgers have."""
        statuses = {ledger.worst_status for ledger in self.ledgers}
        return next((status for status in ("unfinished", FAIL, WARN) if status in statuses), OK)

    @property
    def widest(self) -> Subject:
        """The ledger with the most images: accuracies that it has are of those."""
        return max(self.ledgers, key=lambda ledger: ledger.n)

    @property
    def longest(self) -> Subject:
        """The ledger with the most attacks, then with the most images: its images met the most.

        The worst case of a short suite is no worst case where a longer one was run.
        """
        return max(self.ledgers, key=lambda ledger: (_attacks(ledger), ledger.n))

    @property
    def n(self) -> int:
        return self.widest.n

    @property
    def sample(self) -> tuple[Any, ...]:
        """What two models must share before their worst cases can be compared."""
        return self.longest.sample

    @property
    def suite(self) -> str:
        return self.longest.record.settings["suite"]

    def standing(self, norm: str) -> set[int]:
        """Of the images of the longest ledger those that nothing in any ledger broke."""
        return set(self.longest.record.of["clean"]) - self._lost(norm)

    def _lost(self, norm: str) -> set[int]:
        records = [ledger.record for ledger in self.ledgers]
        return set[int]().union(*(record.wrong() | record.broken_by(record.counting(norm)) for record in records))

    def headline(self, norm: str) -> tuple[Line | None, Line | None, Line | None]:
        """As a ledger has it: the published attack on the most images, the worst case over all ledgers.

        Here too the worst case is that of fewer images where these met more and clearly fewer of them hold.
        """
        if len(self.ledgers) == 1:
            return self.ledgers[0].headline(norm)
        heads = [ledger.headline(norm)[0] for ledger in sorted(self.ledgers, key=lambda ledger: -ledger.n)]
        worst, lost = self.worst[norm], self._lost(norm)
        met = [
            set(ledger.record.of[name]) for ledger in self.ledgers for name in ("clean", *ledger.record.published(norm))
        ]
        shares = [Share(len(images - lost), len(images)) for images in met if images]
        fewer = [share for share in shares if share.interval[1] < worst.share.percent]
        least = min(fewer, key=lambda share: share.percent, default=worst.share)
        return next(filter(None, heads), None), None, replace(worst, share=least)

    @cached_property
    def worst(self) -> dict[str, Line]:
        """The worst case over all ledgers, by norm."""
        n = self.longest.n
        return {
            norm: Line(column=WORST, share=Share(len(self.standing(norm)), n), norm=norm, eps=eps)
            for norm, eps in self.norms.items()
        }

    @property
    def clean(self) -> Line | None:
        return self.widest.line(CLEAN)

    @property
    def lines(self) -> tuple[Line, ...]:
        """All accuracies; of several ledgers each once, on the most images."""
        return self.ledgers[0].lines if len(self.ledgers) == 1 else tuple(self._merged())

    def _merged(self) -> Iterator[Line]:
        if self.clean:
            yield self.clean
        for norm in self.norms:
            best: dict[str | None, Line] = {}
            for ledger in self.ledgers:
                for line in ledger.lines:
                    if (line.column, line.norm) == (PUBLISHED, norm):
                        best[line.attack] = max(best.get(line.attack, line), line, key=lambda line: line.share.n)
            yield from best.values()
            yield self.worst[norm]


def together(subjects: Sequence[Subject]) -> list[Judged]:
    """The models that these ledgers are about, in the order in which they come up."""
    found: dict[str, list[Subject]] = {}
    for subject in subjects:
        found.setdefault(subject.about, []).append(subject)
    return [Judged(ledgers=tuple(ledgers)) for ledgers in found.values()]


def _attacks(ledger: Subject) -> int:
    return sum(len(ledger.record.counting(norm)) for norm in ledger.record.norms)
