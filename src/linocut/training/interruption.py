"""SIGTERM and SIGINT turned into a wish that the loop grants after its step."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Self


class Interruption:
    """Inside the block, the first SIGTERM or SIGINT is noted in `signal` instead of ending the process.

    A second one ends it at once. Outside the main thread, where Python allows no handlers, nothing changes.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.signal = number
