"""What `linocut reproduce` shows: its plan, how it gets on, and what came out."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from linocut.evaluation.progress import span
from linocut.recipes.reproduce.inheritance import TAKEN_OVER

if TYPE_CHECKING:
    from linocut.recipes.reproduce.overview import Line
    from linocut.recipes.reproduce.reproduction import Reproduction
    from linocut.recipes.reproduce.stamps import State
    from linocut.recipes.reproduce.step import Step, Watch

TICK = 0.5  # seconds between two changes of the live line
USUAL = 0.5  # of an upper bound is what we reckon with before the first of its kind is done


def print_plan(reproduction: "Reproduction") -> None:
    """Every step with its state and its time, and the sum of what is left."""
    console = Console()
    table = Table("", box=box.SIMPLE_HEAD, pad_edge=False)
    longest, half = max(len(_of(step)) for step in reproduction.plan.steps), console.width // 2
    # Cut short, pretrained and retrained rows would look alike; names that leave no room for the rest are folded.
    table.add_column("of", no_wrap=longest <= half, overflow="fold", width=min(longest, half))
    table.add_column("what")
    table.add_column("time", no_wrap=longest > half)
    for number, step in enumerate(reproduction.plan.steps, 1):
        told, state = reproduction.estimates[step.name], reproduction.states[step.name].value
        words = f"took {span(told['seconds'])}" if state == "done" else _expected(told)
        table.add_row(str(number), _of(step), step.title, words if state == "to do" else f"{state}, {words}")
    console.print(table)
    for note in reproduction.report.notes:
        console.print(f"Note: {note}", soft_wrap=True, highlight=False)
    if not all(told["whole_batches"] for told in reproduction.estimates.values()):
        console.print("Whole batches would have taken too long to time: some figures are reckoned from four images.")
    painted = {
        _of(step): f"{1 / told['transform_seconds']:,.0f}"
        for step in reproduction.plan.steps
        if "transform_seconds" in (told := reproduction.estimates[step.name])
    }
    if painted:
        rates = ", ".join(f"{row} {rate}" for row, rate in painted.items())
        console.print(f"The transforms alone, images a second: {rates}.", soft_wrap=True, highlight=False)
    bound = "at most " if any(told["at_most"] for told in reproduction.estimates.values()) else ""
    console.print(
        f"Left to do: {bound}{span(reproduction.seconds_left)} on {reproduction.shop.device}. "
        "Attacks are reckoned as if no image broke; the ones that break leave early.",
        soft_wrap=True,
        highlight=False,
    )


def print_outcome(lines: Sequence["Line"], verdict: Sequence[str], notes: Sequence[str], page: Path) -> None:
    """The overview, the verdict, and where the report lies."""
    from linocut.recipes.reproduce.overview import headings, legend

    console = Console()
    named = headings(lines)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for name in named.values():
        table.add_column(name.replace(", ", "\n").replace(" ", "\n"), justify="right", no_wrap=True)
    several = len({line.data_set for line in lines}) > 1
    for line in lines:
        cells = [escape(line.cells[key].words).replace(" ", "\n") if key in line.cells else "" for key in named]
        table.add_row(f"{line.data_set}/{line.row}" if several else line.row, *cells)
    console.print(table)
    for sentence in (*legend(lines), *notes):
        console.print(sentence, style="dim", markup=False, highlight=False)
    for line in lines:
        console.print(f"  {line.data_set}/{line.row}: {line.checks}", style="dim", markup=False, highlight=False)
    console.print("Verdict", style="bold")
    for sentence in verdict or ["Nothing to compare: no row was judged both with and without a transform."]:
        console.print(f"- {sentence}", markup=False, highlight=False)
    console.print(f"The report is {page}", soft_wrap=True, highlight=False)


class Narrator:
    """Says on standard error what is done now and what is left: a live line on a terminal, else a line a step."""

    def __init__(self, reproduction: "Reproduction", *, shown: bool):
        self.reproduction, self.shown, self.live = reproduction, shown, sys.stderr.isatty()
        self.numbers = {step.name: number for number, step in enumerate(reproduction.plan.steps, 1)}
        self.waited_for = ""
        self.left = {name: told["seconds"] for name, told in reproduction.estimates.items()}
        self.bounds = {name for name, told in reproduction.estimates.items() if told["at_most"]}
        self.pace: dict[str, tuple[float, float]] = {}  # by kind of step: seconds taken, seconds expected
        self.taken_over: set[str] = set()
        self.told_at = 0.0

    def __enter__(self) -> "Narrator":
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown and self.live:
            sys.stderr.write("\r\x1b[K")

    def starts(self, step: "Step", state: "State") -> "Watch":
        """Takes note of a step; returns what it is to be told."""
        self.waited_for = ""
        if not self.shown:
            return lambda share, words: None  # there may be no estimates to speak of
        if state.value == "done":
            self.left[step.name] = 0.0
            before = self.reproduction.states[step.name] is state
            self._line(f"{self._head(step)}: {step.title}, done {'before' if before else 'by another process'}")
            return lambda share, words: None
        if not self.live:
            self._line(f"{self._head(step)}: {step.title} (about {span(self._rest())} left)")

        def watch(share: float, words: str) -> None:
            if words == TAKEN_OVER:
                self.taken_over.add(step.name)
            self.left[step.name] = self.reproduction.estimates[step.name]["seconds"] * (1 - share)
            self._show(f"{self._place(step)} about {span(self._rest())} left; {_of(step)}: {words}")

        watch(0.0, step.title)
        return watch

    def ends(self, step: "Step", seconds: float) -> None:
        """Takes note that a step is done."""
        if not self.shown:
            return
        self.left[step.name] = 0.0
        if step.name not in self.taken_over:  # that says nothing of how long its kind takes
            taken, expected = self.pace.get(_kind(step), (0.0, 0.0))
            self.pace[_kind(step)] = (taken + seconds, expected + self.reproduction.estimates[step.name]["seconds"])
        self._line(
            f"{self._head(step)}: {step.title}, took {span(seconds)}" if self.live else f"  took {span(seconds)}"
        )

    def waits(self, step: "Step") -> None:
        """Says once which step of another process is waited for."""
        if step.name != self.waited_for:
            self.waited_for = step.name
            self._line(f"{self._place(step)} waiting for another process: {step.name}")

    def _place(self, step: "Step") -> str:
        return f"[{self.numbers[step.name]}/{len(self.numbers)}]"

    def _head(self, step: "Step") -> str:
        return f"{self._place(step)} {_of(step) or step.name}"

    def _rest(self) -> float:
        """What is left, each kind of step corrected by how its like went so far."""
        total = 0.0
        for step in self.reproduction.plan.steps:
            usual = USUAL if step.name in self.bounds else 1.0
            taken, expected = self.pace.get(_kind(step), (usual, 1.0))
            total += self.left[step.name] * taken / expected
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


def _of(step: "Step") -> str:
    """The row that a step belongs to, its seed only where that is not 0."""
    return step.name.rpartition("/")[0].removesuffix("/seed-0")


def _kind(step: "Step") -> str:
    """Steps whose estimates err alike: a suite's evaluations, trainings, the rest."""
    last = step.name.rsplit("/", 1)[-1]
    return f"{type(step).__name__} {last}"


def _expected(told: dict) -> str:
    if "taken_over" in told:
        return TAKEN_OVER
    return f"{'at most' if told['at_most'] else 'about'} {span(told['seconds'])}"
