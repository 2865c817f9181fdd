"""The accuracies of all ledgers as Markdown, LaTeX and CSV: one line an accuracy, never without n and interval."""

import csv
import io
import re
from collections.abc import Iterator, Sequence

from linocut.report.accuracy import Line
from linocut.report.sources import Subject
from linocut.report.words import percent

HEAD = ("model", "data", "norm", "eps", "column", "attack", "percent", "low", "high", "count", "n", "paper", "state")
_TITLES = ("Model", "Data", "Ball", "Accuracy", "%", "95 % interval", "n", "Paper")
_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "∞": r"$_\infty$",
    "–": "--",
    **{sign: "\\" + sign for sign in "&%$#_{}"},
}


def as_csv(subjects: Sequence[Subject]) -> str:
    """Every line with its counts, for programs; a name that a spreadsheet would run gets an apostrophe before it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEAD)
    for subject, line in _all(subjects):
        share = line.share.as_json()
        writer.writerow(
            [
                _harmless(subject.name),
                _harmless(subject.identity.dataset),
                line.norm or "",
                "" if line.eps is None else repr(line.eps),
                line.column,
                _harmless(line.attack or ""),
                *(share[name] for name in ("percent", "low", "high", "count", "n")),
                "" if line.paper is None else line.paper,
                "unfinished" if subject.unfinished else "finished",
            ]
        )
    return out.getvalue()


def as_markdown(subjects: Sequence[Subject]) -> str:
    """A table that GitHub shows."""
    rows = [_TITLES, *_cells(subjects)]
    told = ["| " + " | ".join(map(_markdown, row)) + " |" for row in rows]
    return "\n".join([told[0], "|---|---|---|---|--:|---|--:|--:|", *told[1:]]) + "\n"


def as_latex(subjects: Sequence[Subject]) -> str:
    """A tabular that needs the package booktabs."""
    body = [" & ".join(map(_latex, row)) + r" \\" for row in (_TITLES, *_cells(subjects))]
    rules = [
        r"\begin{tabular}{llllrlrr}",
        r"\toprule",
        body[0],
        r"\midrule",
        *body[1:],
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(rules) + "\n"


def _all(subjects: Sequence[Subject]) -> Iterator[tuple[Subject, Line]]:
    return ((subject, line) for subject in subjects for line in subject.lines)


def _cells(subjects: Sequence[Subject]) -> Iterator[tuple[str, ...]]:
    for subject, line in _all(subjects):
        low, high = line.share.interval
        yield (
            subject.name + (" (unfinished)" if subject.unfinished else ""),
            subject.identity.dataset,
            line.ball,
            line.words,
            percent(line.share),
            f"{low:.2f}–{high:.2f}",
            str(line.share.n),
            "" if line.paper is None else f"{line.paper:.2f}",
        )


def _harmless(name: str) -> str:
    return "'" + name if name[:1] in ("=", "+", "-", "@", "\t", "\r") else name


def _markdown(name: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(name.split()))


def _latex(name: str) -> str:
    return "".join(_TEX.get(sign, sign) for sign in " ".join(name.split()))
