"""What `linocut transform` shows: a bar while it runs, a table when it is done."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from linocut.recipes.file_plan import as_one_line
from linocut.recipes.transform_files import Outcome

MOST_LISTED = 50


class _Rate(ProgressColumn):
    """The mean rate since the start; files are finished in bursts, and the last burst says nothing."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.completed / task.elapsed:.1f} images/s" if task.elapsed else "")


@contextlib.contextmanager
def progress(total: int, *, shown: bool) -> Iterator[Callable[[], None]]:
    """A bar on standard error; yields the function that moves it on by one."""
    columns = (BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)


def print_summary(summary: dict[str, Any], outcomes: Sequence[Outcome], out: Path) -> None:
    """Prints counts and colours, what had to be changed in reading, and every file that was left out."""
    console = Console()
    table = Table("images", "colours min", "mean", "max", "images/s", "skipped")
    keys = ("images", "colors_min", "colors_mean", "colors_max", "images_per_second", "skipped")
    table.add_row(*("-" if summary[key] is None else f"{summary[key]:,}" for key in keys))
    console.print(table)
    for note, times in summary["notes"].items():
        console.print(f"[dim]{times} x {escape(as_one_line(note))}[/]", highlight=False)
    problems = [outcome for outcome in outcomes if outcome.problem is not None]
    for outcome in problems[:MOST_LISTED]:
        console.print(
            f"[red]skipped[/] {escape(as_one_line(str(outcome.job.source)))}: {escape(outcome.problem or '')}",
            highlight=False,
            soft_wrap=True,
        )
    if len(problems) > MOST_LISTED:
        console.print(f"and {len(problems) - MOST_LISTED} more; --json lists them all")
    console.print(f"Written to {escape(as_one_line(str(out)))}", highlight=False, soft_wrap=True)
