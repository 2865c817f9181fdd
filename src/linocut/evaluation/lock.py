"""One writer a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linocut.errors import InputError
from linocut.models.locks import lock_file, taken


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Holds the folder's lock while inside."""
    with lock_file(folder / "lock") as file:
        if not taken(file):
            file.seek(0)
            owner = file.read().strip() or "another process"
            raise InputError(f"{folder} is being written by {owner}: wait for it, or give another --out folder")
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield
