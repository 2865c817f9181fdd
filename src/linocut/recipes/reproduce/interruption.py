"""Stopping between or within steps: by a signal, or because the minutes that were given are over."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Self

OUT_OF_TIME = 75  # the system's "try again later" (EX_TEMPFAIL)


class Stopped(BaseException):
    """A run was told to stop, by a signal. Not an Exception: nothing on the way may take it for a failure."""

    def __init__(self, number: int):
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


class Stopwatch:
    """Inside the block SIGTERM and SIGINT raise Stopped, and the end of `minutes` does what SIGTERM does.

    Training takes over SIGTERM while it runs and saves after its step; an evaluation loses the batch it is in, as
    it would to a crash. Outside the main thread, where Python allows no handlers, nothing changes.
    """

    def __init__(self, minutes: float | None):
        self.minutes, self.over = minutes, False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._stop)
            if self.minutes is not None:
                self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._end)
                signal.setitimer(signal.ITIMER_REAL, max(1e-3, 60 * self.minutes))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def status(self, stopped: Stopped) -> int:
        """The exit status: 75 where the minutes were over, else 128 and the signal's number."""
        return OUT_OF_TIME if self.over else 128 + stopped.number

    def _stop(self, number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.over = True
        signal.raise_signal(signal.SIGTERM)
