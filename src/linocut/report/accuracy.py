"""The accuracies of a record as lines: clean, as published, worst case, each with the paper's figure beside it."""

from collections.abc import Iterator
from dataclasses import dataclass

from linocut.evaluation.record import Record, Share
from linocut.report.identity import Identity, paper_figure
from linocut.report.words import NORMS

CLEAN, PUBLISHED, SAME, WORST = "clean", "published", "worst, same examples", "worst"
ATTACKS = {"pgd-published": "PGD", "square-published": "Square", "chen-published": "Chen et al."}


@dataclass(frozen=True, kw_only=True)
class Line:
    """One accuracy. `norm`, `eps` and `attack` are None where they do not apply; `paper` is in per cent."""

    column: str
    share: Share
    norm: str | None = None
    eps: float | None = None
    attack: str | None = None
    paper: float | None = None

    @property
    def words(self) -> str:
        """What the line says, in the words of the page."""
        if self.column == PUBLISHED:
            assert self.attack is not None
            return f"as published: {ATTACKS.get(self.attack, self.attack)}"
        if self.column == SAME:
            return f"worst case, the same {self.share.n} images"
        return "worst case" if self.column == WORST else self.column

    @property
    def ball(self) -> str:
        return "" if self.norm is None else f"{NORMS[self.norm]} {self.eps:.4g}"


def accuracies(record: Record, identity: Identity) -> tuple[Line, ...]:
    """All lines of a ledger, none of them without examples."""
    return tuple(line for line in _lines(record, identity) if line.share.n)


def _lines(record: Record, identity: Identity) -> Iterator[Line]:
    yield Line(column=CLEAN, share=record.clean, paper=paper_figure(identity, record, None))
    for norm, eps in record.norms.items():
        for name, share in record.published(norm).items():
            attack = name.partition("/")[2]
            paper = paper_figure(identity, record, norm, attack)
            yield Line(column=PUBLISHED, share=share, norm=norm, eps=eps, attack=attack, paper=paper)
            if share.n < record.clean.n:  # or the worst case could look better than what it is the worst of
                same = record.worst(norm, record.of[name])
                yield Line(column=SAME, share=same, norm=norm, eps=eps, attack=attack)
        yield Line(column=WORST, share=record.worst(norm), norm=norm, eps=eps)
