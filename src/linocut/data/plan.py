"""A data set that has to be decoded: what there is to do, and the doing of it with threads."""

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Progress = Callable[[int, int], None]  # how many images are done, and of how many
CHUNK = 32  # images a task: long enough to hide what a task costs
AHEAD = 4  # tasks a worker that may wait to be written: this bounds the memory


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to make one split from files.

    folder: where the files lie; it may move without a new decoding. decode(i): image i as uint8 of the given
    shape, or None where the preparation drops it. settings: whatever else decides the pixels, so that two
    plans of equal settings and files give equal pixels. drops: why images are dropped, for the notes.
    """

    name: str
    split: str
    classes: tuple[str, ...]
    folder: Path
    files: tuple[Path, ...]
    labels: tuple[int, ...]
    shape: tuple[int, int, int]
    decode: Callable[[int], np.ndarray | None]
    settings: dict[str, Any]
    drops: str = "dropped"
    notes: tuple[str, ...] = field(default=())

    def key(self) -> str:
        """The SHA-256 of the settings and of every file's path, size and time of change."""
        described = {
            "name": self.name,
            "split": self.split,
            "classes": self.classes,
            "shape": self.shape,
            "settings": self.settings,
            "notes": self.notes,
        }
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
        for path, label in zip(self.files, self.labels, strict=True):
            state = path.stat()
            name = str(path).removeprefix(str(self.folder))
            line = f"\n{label} {state.st_size} {state.st_mtime_ns} {name}"
            digest.update(line.encode(errors="surrogateescape"))
        return digest.hexdigest()

    def batches(self, progress: Progress | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pixels (n, C, H, W) and labels (n,) in the order of the files, decoded by one thread a core."""
        starts = range(0, len(self.files), CHUNK)
        waiting: deque[Future[tuple[np.ndarray, np.ndarray]]] = deque()
        workers = usable_cores()
        with ThreadPoolExecutor(workers) as pool:
            try:
                for done, start in enumerate(starts):
                    waiting.append(pool.submit(self._chunk, start))
                    if len(waiting) >= AHEAD * workers:
                        yield waiting.popleft().result()
                        if progress:
                            progress(min((done + 1 - len(waiting)) * CHUNK, len(self.files)), len(self.files))
                while waiting:
                    yield waiting.popleft().result()
                    if progress:
                        progress(len(self.files) - len(waiting) * CHUNK, len(self.files))
            finally:
                pool.shutdown(cancel_futures=True)

    def _chunk(self, start: int) -> tuple[np.ndarray, np.ndarray]:
        indices = range(start, min(start + CHUNK, len(self.files)))
        kept = [(image, self.labels[i]) for i in indices if (image := self.decode(i)) is not None]
        pixels = np.stack([image for image, _ in kept]) if kept else np.empty((0, *self.shape), np.uint8)
        assert pixels.shape[1:] == self.shape, f"{pixels.shape} decoded, {self.shape} planned"
        return pixels, np.array([label for _, label in kept], np.int64)

    def outcome(self, kept: int) -> tuple[str, ...]:
        """The notes of a set of which this many images were kept."""
        dropped = len(self.files) - kept
        return (*self.notes, f"{dropped} of {len(self.files)} images {self.drops}") if dropped else self.notes


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
