"""The accuracies of all models as Markdown, LaTeX and CSV: one line an accuracy, never without n and interval."""

import csv
import io
import re
from collections.abc import Iterator, Sequence

from linocut.report.accuracy import Line
from linocut.report.judged import Judged
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


def as_csv(models: Sequence[Judged]) -> str:
    """Every line with its counts, for programs; a name that a spreadsheet would run gets an apostrophe before it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEAD)
    for model, line in _all(models):
        share = line.share.as_json()
        writer.writerow(
            [
                _harmless(model.name),
                _harmless(model.identity.dataset),
                line.norm or "",
                "" if line.eps is None else repr(line.eps),
                line.column,
                _harmless(line.attack or ""),
                *(share[name] for name in ("percent", "low", "high", "count", "n")),
                "" if line.paper is None else line.paper,
                "unfinished" if model.unfinished else "finished",
            ]
        )
    return out.getvalue()


def as_markdown(models: Sequence[Judged]) -> str:
    """A table that GitHub shows."""
    rows = [_TITLES, *_cells(models)]
    told = ["| " + " | ".join(map(_markdown, row)) + " |" for row in rows]
    return "\n".join([told[0], "|---|---|---|---|--:|---|--:|--:|", *told[1:]]) + "\n"


def as_latex(models: Sequence[Judged]) -> str:
    """A tabular that needs the package booktabs."""
    body = [" & ".join(map(_latex, row)) + r" \\" for row in (_TITLES, *_cells(models))]
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


def _all(models: Sequence[Judged]) -> Iterator[tuple[Judged, Line]]:
    return ((model, line) for model in models for line in model.lines)


def _cells(models: Sequence[Judged]) -> Iterator[tuple[str, ...]]:
    for model, line in _all(models):
        low, high = line.share.interval
        yield (
            model.name + (" (unfinished)" if model.unfinished else ""),
            model.identity.dataset,
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
