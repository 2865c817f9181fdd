"""The table at the end of an evaluation."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from linocut.evaluation import summary
from linocut.evaluation.findings import Finding
from linocut.evaluation.record import Record

_COLORS = {"ok": "green", "warn": "yellow", "fail": "red", "not applicable": "dim"}


def print_record(record: Record, findings: list[Finding], folder: Path) -> None:
    """Prints accuracies with n and interval, then the findings."""
    console = Console()
    accuracies = Table("ball", "column", "accuracy", "95 % interval", "n")
    for line in summary.accuracy_lines(record):
        accuracies.add_row(*line)
    console.print(accuracies)
    for note in summary.notes(record):
        console.print(f"[yellow]{note}[/]")
    found = Table("", "finding", "what was found")
    for status, code, sentence in summary.finding_lines(findings):
        found.add_row(f"[{_COLORS[status]}]{status}[/]", code, sentence)
    console.print(found)
    for norm in record.norms:
        skipped = summary.not_applicable(record, norm)
        if skipped:
            console.print(f"Not applicable to this model: {', '.join(skipped)}")
    console.print(f"The ledger is {folder}; check it with: linocut verify {folder}", soft_wrap=True)
