"""One writer a folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linocut.errors import InputError


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Holds the folder's lock while inside. The system drops it with the process, so no stale lock can stay."""
    with open(folder / "lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            owner = file.read().strip() or "another process"
            raise InputError(
                f"{folder} is being written by {owner}: wait for it, or give another --out folder"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield
