"""A record in a page: clean, as published, worst case, findings; as JSON and as text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linocut.evaluation.findings import FAIL, OK, Finding
from linocut.evaluation.record import Record

_NORMS = {"linf": "L-inf", "l2": "L2"}
ENOUGH = 20  # images on which guessing shows


def as_json(record: Record, findings: list[Finding], folder: Path) -> dict[str, Any]:
    """Everything the table shows, with counts and intervals."""
    return {
        "ledger": str(folder),
        "settings": {name: value for name, value in record.settings.items() if name != "classes"},
        "clean": record.clean.as_json(),
        "norms": {
            norm: {
                "eps": eps,
                "published": {name: share.as_json() for name, share in record.published(norm).items()},
                "worst_on_the_same": {
                    name: record.worst(norm, record.of[name]).as_json()
                    for name, share in record.published(norm).items()
                    if share.n < record.clean.n
                },
                "worst": record.worst(norm).as_json(),
                "not_applicable": not_applicable(record, norm),
            }
            for norm, eps in record.norms.items()
        },
        "notes": notes(record),
        "findings": [finding.as_json() for finding in findings],
        "failed": failed(findings),
    }


def failed(findings: list[Finding]) -> list[str]:
    """The codes of the findings that fail."""
    return sorted({finding.code for finding in findings if finding.status == FAIL})


def not_applicable(record: Record, norm: str) -> list[str]:
    """The entries that found nothing to hold on to in this model."""
    names = record.names(norm=norm)
    return [name for name in names if record.of[name] and not record.ran(name)]


def notes(record: Record) -> list[str]:
    """What a reader must know about the numbers: a model that guesses, and finds that it may have meant to reject."""
    classes, told = len(record.settings.get("classes", ())), []
    if classes and record.clean.n >= ENOUGH and record.clean.interval[0] <= 100 / classes:
        told.append(
            f"Clean accuracy is not shown to be better than chance (1 in {classes}) on {record.clean.n} images: are "
            "the labels in the model's order, and does it take images in [0,1]?"
        )
    answers = record.made_with.get("answers") or [[]]
    if len(answers[0]) != classes + 1:  # only then may the last class mean "rejected"
        return told
    for norm in record.norms:
        rows = [row for name in record.counting(norm) for row in record.of[name].values() if row.broken]
        taken = {row.example for row in rows if row.prediction < classes}
        rejected = {row.example for row in rows} - taken
        if rejected:
            told.append(
                f"{_NORMS[norm]}: {len(rejected)} of the {len(taken | rejected)} images that fell were given class "
                f"{classes}, which no label has. If it means 'rejected', they are no success of the attacker."
            )
    return told


def accuracy_lines(record: Record) -> list[tuple[str, str, str, str, str]]:
    """The table: norm and radius, column, accuracy, 95 % interval, n."""

    def line(where: str, column: str, share) -> tuple[str, str, str, str, str]:
        low, high = share.interval
        return where, column, f"{share.percent:.2f} %", f"{low:.2f} to {high:.2f}", str(share.n)

    suite, lines = record.settings["suite"], [line("", "clean", record.clean)]
    for norm, eps in record.norms.items():
        where = f"{_NORMS[norm]} {eps:.4g}"
        for name, share in record.published(norm).items():
            lines.append(line(where, f"as published: {name.split('/')[1].removesuffix('-published')}", share))
            if share.n < record.clean.n:  # or the worst case could look better than what it is the worst of
                lines.append(
                    line(where, f"worst case of {suite}, the same {share.n}", record.worst(norm, record.of[name]))
                )
        lines.append(line(where, f"worst case of {suite}", record.worst(norm)))
    return lines


def finding_lines(findings: list[Finding]) -> list[tuple[str, str, str]]:
    """Status, code with its norm, sentence with what to do."""
    return [
        (
            finding.status,
            finding.code + (f" ({_NORMS[finding.norm]})" if finding.norm else ""),
            finding.sentence + ("" if finding.status == OK or not finding.advice else f" {finding.advice}"),
        )
        for finding in findings
    ]


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of plain text, in columns as wide as they need to be."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
