"""Locks of a folder that several processes work in; the system drops each with its process, however that ends."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from linocut.errors import InputError
from linocut.recipes.reproduce.step import Step, Workshop

FOLDER = "locks"


@contextlib.contextmanager
def free(step: Step, shop: Workshop) -> Iterator[bool]:
    """Whether nobody else is at the step; then it is ours inside the block."""
    with _opened(shop, step.name.replace("/", ".")) as lock:
        yield _taken(lock, fcntl.LOCK_EX)


@contextlib.contextmanager
def one_at_a_time(shop: Workshop) -> Iterator[None]:
    """Wait for whoever is changing what all processes read, and hold them off inside the block."""
    with _opened(shop, "plan") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def member(shop: Workshop) -> Iterator[bool]:
    """Whether nobody else works in the folder; inside the block we do. To be entered one at a time."""
    with _opened(shop, "members") as lock:
        alone = _taken(lock, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield alone


def _opened(shop: Workshop, name: str) -> TextIO:
    path: Path = shop.out / FOLDER / f"{name}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a+")
    except OSError as error:
        raise InputError(f"cannot use {shop.out}: {error.strerror}; choose a folder that can be written") from error


def _taken(lock: TextIO, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
