"""The log of a run: one JSON line at a time, and TensorBoard where it is installed."""

import json
import warnings
from pathlib import Path
from typing import Any

from linocut.errors import InputError
from linocut.files import write_whole

LOG_FILE = "log.jsonl"


class Journal:
    """Appends rows to RUN/log.jsonl; on resuming after `step` steps, later rows are dropped."""

    def __init__(self, folder: Path, step: int):
        self.file = folder / LOG_FILE
        if self.file.exists():
            kept = [row for row in read_log(folder) if row["step"] <= step]
            write_whole(self.file, "".join(json.dumps(row) + "\n" for row in kept).encode())
        self.board = _tensorboard(folder, step)

    def write(self, row: dict[str, Any]) -> None:
        try:
            with open(self.file, "a") as stream:
                stream.write(json.dumps(row) + "\n")
        except OSError as error:
            raise InputError(f"cannot write {self.file}: {error.strerror}") from error
        if self.board is not None:
            for name, value in row.items():
                if name != "step" and isinstance(value, int | float):
                    self.board.add_scalar(name, value, row["step"])

    def close(self) -> None:
        if self.board is not None:
            self.board.close()


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run's log; a torn line at its end is dropped with a warning."""
    lines = (folder / LOG_FILE).read_text(errors="replace").splitlines()
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            if not isinstance(row, dict) or not isinstance(row.get("step"), int):
                raise ValueError("it names no step")
            rows.append(row)
        except ValueError as error:
            if number != len(lines):
                raise InputError(
                    f"{folder / LOG_FILE}, line {number} is no row of a log ({error}): remove it, a run goes on without"
                ) from error
            warnings.warn(f"dropped the torn last line of {folder / LOG_FILE}", stacklevel=2)
    return rows


def _tensorboard(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)
