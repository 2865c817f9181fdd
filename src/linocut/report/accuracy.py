"""The accuracies of a record as lines: clean, as published, worst case, each with the paper's figure beside it."""

from collections.abc import Iterator
from dataclasses import dataclass

from linocut.evaluation.record import Share
from linocut.report.identity import paper_figure
from linocut.report.sources import NORMS, Subject

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


def lines(subject: Subject) -> list[Line]:
    """All lines of a subject, none of them without examples."""
    return [line for line in _lines(subject) if line.share.n]


def headline(subject: Subject, norm: str) -> tuple[Line | None, Line | None, Line | None]:
    """Of a norm: the published attack, the worst case on the same examples if those are fewer, the worst case."""
    here = [line for line in lines(subject) if line.norm == norm]
    published = [line for line in here if line.column == PUBLISHED]
    wanted = subject.identity.published_attack
    chosen = next((line for line in published if line.attack == wanted), published[0] if published else None)
    worst = next((line for line in here if line.column == WORST), None)
    if chosen is None or worst is None or chosen.share.n >= worst.share.n:
        return chosen, None, worst
    same = next((line for line in here if line.column == SAME and line.attack == chosen.attack), None)
    return chosen, same, worst


def _lines(subject: Subject) -> Iterator[Line]:
    record, identity = subject.record, subject.identity
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
