"""One publication into a folder of results at a time."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from linocut.errors import InputError
from linocut.models.locks import taken


@contextlib.contextmanager
def alone_in(results: Path) -> Iterator[None]:
    """Holds the folder itself, so that no file of a lock is published; it is made, and removed if it stays empty."""
    try:
        results.mkdir(parents=True, exist_ok=True)
        handle = os.open(results, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(f"cannot publish into {results}: {error.strerror}; name a folder") from error
    try:
        if not taken(handle):
            raise InputError(f"another process is publishing into {results}: run this again when it ends")
        yield
    finally:
        os.close(handle)  # and with it the lock
        with contextlib.suppress(OSError):
            results.rmdir()
