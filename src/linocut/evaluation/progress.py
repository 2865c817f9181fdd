"""A line a running attack: how far, how quickly, how much longer."""

import sys
import time


class Progress:
    """Shows where an evaluation stands, on standard error: a live line on a terminal, else a line an entry."""

    def __init__(self, *, shown: bool):
        self.shown = shown and sys.stderr is not None  # a program without a terminal may have none
        self.live = self.shown and sys.stderr.isatty()
        self.entry, self.started, self.ended = "", 0.0, time.monotonic()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown and self.live:
            sys.stderr.write("\n")

    def watch(self, entry, done: int, due: int, before: int) -> None:
        """Called after each batch: examples done, due, and of those the ones an earlier run had done."""
        now = time.monotonic()
        if entry.name != self.entry:
            self.entry, self.started = entry.name, self.ended  # it began when the one before ended
        self.ended = now
        if not self.shown or due == 0 or (not self.live and done < due):
            return
        fresh, took = done - before, now - self.started
        rate = fresh / took if took > 0 and fresh else 0.0
        left = f", {span((due - done) / rate)} left" if rate and done < due else ""
        speed = f", {rate:.1f} examples/s" if rate else ""
        text = f"{entry.name}: {done} of {due}{speed}{left}" + ("" if done < due else f", took {span(took)}")
        sys.stderr.write(f"\r\x1b[K{text}" + ("\n" if done == due else "") if self.live else text + "\n")
        sys.stderr.flush()


def span(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
