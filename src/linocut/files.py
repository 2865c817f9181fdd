"""Files that are whole or absent: written beside their place, flushed to disk, then renamed into it."""

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from linocut.errors import InputError

TEMPORARY_SUFFIX = ".unfinished"
UNFINISHED = shutil.ignore_patterns(f".*{TEMPORARY_SUFFIX}")  # for copytree


@contextlib.contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A path to write to; it becomes `path` when the block ends well, and vanishes when it does not.

    A process killed inside leaves at most a file that ends in `.unfinished`, which nothing ever reads. Not mkstemp:
    its files are for their owner alone, and most are made to be handed on.
    """
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")  # threads may overlap
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield unfinished
        _flush(unfinished, os.O_RDWR)
        os.replace(unfinished, path)
        with contextlib.suppress(OSError):  # the file is there; not every system flushes folders
            _flush(path.parent, os.O_RDONLY)
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """The same for a file that was asked for: where it cannot be written, an InputError says so."""
    try:
        with beside(path) as unfinished:
            yield unfinished
    except OSError as error:
        raise InputError(
            f"could not write {path}: {error.strerror or error}. "
            "What stood there before is untouched; free space or choose another folder"
        ) from error


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` at `path`, all of it or nothing."""
    with whole_file(path) as unfinished:
        unfinished.write_bytes(content)


def remove_unfinished(folder: Path) -> None:
    """Clear away what killed processes left unfinished; only for one who is alone in the folder."""
    for leftover in folder.glob(f".*{TEMPORARY_SUFFIX}"):
        leftover.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _flush(path: Path, mode: int) -> None:
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
