"""What a command says and returns when it is stopped with everything saved."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def stops(minutes: float | None, *, saving: bool = True) -> Iterator[None]:
    """Inside, SIGTERM, SIGINT and the end of the minutes end the command with their own status and a word of advice."""
    from linocut.recipes.reproduce.interruption import Stopped, Stopwatch

    watch = Stopwatch(minutes)
    try:
        with watch:
            yield
    except Stopped as stopped:
        why = f"the {minutes:g} minutes are over" if watch.over else str(stopped)
        advice = "what was made is saved: run the same command again to go on" if saving else "nothing was made"
        typer.echo(f"\n{why}; {advice}", err=True)
        raise typer.Exit(watch.status(stopped)) from None
