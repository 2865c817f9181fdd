"""Locks of the system: it drops them with their process, however that ends, so no stale one can stay."""

import fcntl
from pathlib import Path
from typing import TextIO

from linocut.errors import InputError


def lock_file(path: Path) -> TextIO:
    """The file at `path`, open to be locked; it is made, with its folder, where it is not there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a+")
    except OSError as error:
        raise InputError(f"cannot use {path.parent}: {error.strerror}; choose a folder that can be written") from error


def taken(file: TextIO | int) -> bool:
    """Whether the lock of this open file is ours until it is closed; no, where another process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise InputError(f"this disk has no locks ({error.strerror}): choose a folder on another one") from error
    return True
