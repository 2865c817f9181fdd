"""What `linocut reproduce` shows: its plan, how it gets on, and what came out."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from linocut.cli.progress import span

if TYPE_CHECKING:
    from linocut.recipes.reproduce.overview import Line
    from linocut.recipes.reproduce.session import Session
    from linocut.recipes.reproduce.stamps import State
    from linocut.recipes.reproduce.step import Step, Watch

TICK = 0.5  # seconds between two changes of the live line


def print_plan(session: "Session") -> None:
    """Every step with its state and its time, and the sum of what is left."""
    console = Console()
    table = Table("", "step", "what", "time")
    for number, step in enumerate(session.plan.steps, 1):
        told, state = session.estimates[step.name], session.states[step.name].value
        words = f"took {span(told['seconds'])}" if state == "done" else _expected(told)
        table.add_row(str(number), step.name, step.title, words if state == "to do" else f"{state}, {words}")
    console.print(table)
    for note in session.report.notes:
        console.print(f"Note: {note}", soft_wrap=True, highlight=False)
    if not all(told["whole_batches"] for told in session.estimates.values()):
        console.print("Whole batches would have taken too long to time: some figures are reckoned from four images.")
    bound = "at most " if any(told["at_most"] for told in session.estimates.values()) else ""
    console.print(
        f"Left to do: {bound}{span(session.seconds_left)} on {session.shop.device}. "
        "Attacks are reckoned as if no image broke; the ones that break leave early.",
        soft_wrap=True,
        highlight=False,
    )


def print_outcome(lines: Sequence["Line"], verdict: Sequence[str], notes: Sequence[str], page: Path) -> None:
    """The overview, the verdict, and where the report lies."""
    from linocut.recipes.reproduce.overview import COLUMNS

    console = Console()
    shown = {key: name for key, name in COLUMNS.items() if any(key in line.cells for line in lines)}
    table = Table("row", *shown.values(), title="Accuracy in per cent (lowest to highest seed) [paper]")
    several = len({line.data_set for line in lines}) > 1
    for line in lines:
        cells = [line.cells[key].words if key in line.cells else "" for key in shown]
        table.add_row(
            f"{line.data_set}/{line.row}" if several else line.row, *(cell.replace("[", "\\[") for cell in cells)
        )
    console.print(table)
    for sentence in (*notes, *verdict):
        console.print(f"- {sentence}", soft_wrap=True, highlight=False)
    console.print(f"The report is {page}", soft_wrap=True, highlight=False)


class Narrator:
    """Says on standard error what is done now and what is left: a live line on a terminal, else a line a step."""

    def __init__(self, session: "Session", *, shown: bool):
        self.session, self.shown, self.live = session, shown, sys.stderr.isatty()
        self.count = len(session.plan.steps)
        self.number = 0
        self.left = {name: told["seconds"] for name, told in session.estimates.items()}
        self.pace: dict[str, tuple[float, float]] = {}  # by kind of step: seconds taken, seconds expected
        self.told_at = 0.0

    def __enter__(self) -> "Narrator":
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown and self.live:
            sys.stderr.write("\r\x1b[K")

    def starts(self, step: "Step", state: "State") -> "Watch":
        """Takes note of a step; returns what it is to be told."""
        self.number += 1
        self.kind, self.began = _kind(step), time.monotonic()
        if state.value == "done":
            self.left[step.name] = 0.0
            self._line(f"{self._head(step)}: done before")
            return lambda share, words: None
        if not self.live:
            self._line(f"{self._head(step)}: {step.title} (about {span(self._rest())} left in all)")

        def watch(share: float, words: str) -> None:
            self.left[step.name] = self.session.estimates[step.name]["seconds"] * (1 - share)
            self._show(f"{self._head(step)}: {words}; about {span(self._rest())} left in all")

        watch(0.0, step.title)
        return watch

    def ends(self, step: "Step", seconds: float) -> None:
        """Takes note that a step is done."""
        self.left[step.name] = 0.0
        taken, expected = self.pace.get(_kind(step), (0.0, 0.0))
        self.pace[_kind(step)] = (taken + seconds, expected + self.session.estimates[step.name]["seconds"])
        self._line(
            f"{self._head(step)}: {step.title}, took {span(seconds)}" if self.live else f"  took {span(seconds)}"
        )

    def _head(self, step: "Step") -> str:
        return f"[{self.number}/{self.count}] {step.name}"

    def _rest(self) -> float:
        """What is left, each kind of step corrected by how its like went so far."""
        total = 0.0
        for step in self.session.plan.steps:
            taken, expected = self.pace.get(_kind(step), (1.0, 1.0))
            total += self.left[step.name] * (taken / expected if expected else 1.0)
        return total

    def _line(self, text: str) -> None:
        if self.shown:
            sys.stderr.write(("\r\x1b[K" if self.live else "") + text + "\n")
            sys.stderr.flush()

    def _show(self, text: str) -> None:
        now = time.monotonic()
        if self.shown and self.live and now - self.told_at > TICK:
            self.told_at = now
            sys.stderr.write(f"\r\x1b[K{text[: Console().width - 1]}")
            sys.stderr.flush()


def _kind(step: "Step") -> str:
    """Steps whose estimates err alike: a suite's evaluations, trainings, the rest."""
    last = step.name.rsplit("/", 1)[-1]
    return f"{type(step).__name__} {last}"


def _expected(told: dict) -> str:
    return f"{'at most' if told['at_most'] else 'about'} {span(told['seconds'])}"
