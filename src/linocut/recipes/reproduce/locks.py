"""Locks of a folder that several processes work in."""

import contextlib
import fcntl
from collections.abc import Iterator
from typing import TextIO

from linocut.models.locks import lock_file, taken
from linocut.recipes.reproduce.step import Step, Workshop

FOLDER = "locks"


@contextlib.contextmanager
def free(step: Step, shop: Workshop) -> Iterator[bool]:
    """Whether nobody else is at the step; then it is ours inside the block."""
    with _opened(shop, step.name.replace("/", ".")) as lock:
        yield taken(lock)


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
        alone = taken(lock)
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield alone


def _opened(shop: Workshop, name: str) -> TextIO:
    return lock_file(shop.out / FOLDER / f"{name}.lock")
