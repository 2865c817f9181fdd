"""Rows on disk: appended by many workers, resumed after a crash, merged into one canonical file.

    DIR/header.json          settings, entries, versions, hashes, command
    DIR/parts/rank-0.jsonl   what a worker appends, synced batch by batch
    DIR/rows.jsonl           the merged rows, in canonical order; the parts are gone then
    DIR/rows.safetensors.xz  the same rows in a packed ledger, which nobody appends to: columns.py
    DIR/images/...           see shards.py

A row's key is (entry, example); where a key comes twice the later line holds, so that a batch which a crash
cut in two is simply done again.
"""

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from linocut.errors import InputError
from linocut.evaluation import columns
from linocut.evaluation import header as headers
from linocut.evaluation.rows import Row, from_line, to_line
from linocut.files import write_whole

ROWS, PARTS = "rows.jsonl", "parts"


class Ledger:
    """The rows of one folder as a worker sees them: all that was there, and a file of its own to append to."""

    def __init__(self, folder: Path, rank: int = 0):
        self.folder = folder
        self.rows: dict[tuple[str, int], Row] = {row.key: row for row in read_rows(folder)}
        self._part = folder / PARTS / f"rank-{rank}.jsonl"
        self._part.parent.mkdir(exist_ok=True)
        _cut_torn_line(self._part)
        self._part.touch()  # from here to the merge the run is not finished

    def append(self, rows: Sequence[Row]) -> None:
        """Adds the rows; when this returns they are on the disk."""
        try:
            with open(self._part, "a") as file:
                file.write("".join(map(to_line, rows)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as reason:
            raise InputError(f"{self._part} cannot be written ({reason}): make room and run again to go on") from reason
        self.rows.update((row.key, row) for row in rows)


def read_rows(folder: Path) -> list[Row]:
    """All rows of a folder, packed, merged or in parts, one a key, in the order they were written."""
    if (folder / columns.NAME).exists():
        header = headers.read(folder)
        return columns.read(folder, most=len(header["entries"]) * int(header["settings"].get("n") or 0))
    if (folder / headers.NAME).exists() and "packed" in headers.read(folder):
        raise InputError(
            f"{folder} is a packed ledger without {columns.NAME}: its rows were removed, or packed by an older "
            "version. Fetch it again, or publish it again from the reproduction"
        )
    paths = [path for path in (folder / ROWS, *sorted((folder / PARTS).glob("*.jsonl"))) if path.exists()]
    rows = {row.key: row for path in paths for row in _read_file(path)}
    return list(rows.values())


def merged_file(folder: Path) -> Path | None:
    """The file of all rows, as lines or packed; None before the merge."""
    return next((path for path in (folder / columns.NAME, folder / ROWS) if path.exists()), None)


def is_finished(folder: Path) -> bool:
    """Whether the run came to its end: its rows are merged, and no part waits for that."""
    return merged_file(folder) is not None and not any((folder / PARTS).glob("*.jsonl"))


def canonical(rows: Iterable[Row], entries: Iterable[str]) -> list[Row]:
    """One row a key, ordered by entry (as in the suite), then example: the same for any number of workers.

    Only `milliseconds` can differ between two runs; comparisons leave it out.
    """
    rank = {name: position for position, name in enumerate(entries)}
    unique = {row.key: row for row in rows}
    return sorted(unique.values(), key=lambda row: (rank[row.entry], row.example))


def merge(folder: Path) -> list[Row]:
    """The canonical rows of a folder, written as its one file.

    The merged file is in place before a part goes, so a crash in between only leaves rows twice.
    """
    merged = canonical(read_rows(folder), headers.read(folder)["entries"])
    write_whole(folder / ROWS, "".join(map(to_line, merged)).encode())
    for part in (folder / PARTS).glob("*.jsonl"):
        part.unlink()
    return merged


def _read_file(path: Path) -> list[Row]:
    """The rows of one file; a torn last line is dropped with a warning, a damaged line elsewhere is refused."""
    lines = path.read_bytes().splitlines(keepends=True)
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):  # only the last can be so
            warnings.warn(f"{path}: the last line was cut short and is dropped", stacklevel=2)
            break
        try:
            rows.append(from_line(line.decode()))
        except ValueError as reason:
            raise InputError(
                f"{path}, line {number}, is damaged ({reason}): restore the file, or remove that line to redo its row"
            ) from None
    return rows


def _cut_torn_line(path: Path) -> None:
    """Shortens the file to its last whole line, so that the next row does not continue a torn one."""
    if path.exists():
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            write_whole(path, whole)
