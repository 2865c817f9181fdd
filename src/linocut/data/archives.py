"""Archives, unpacked without trusting them. Nothing else in the package writes out what a zip or tar holds.

Members go one by one into a new folder beside their destination, and are moved over once all of them are
there: an archive that is refused, or cut short, leaves nothing behind.
"""

import gzip
import os
import shutil
import stat
import tarfile
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from linocut.errors import InputError

BLOCK = 2**20
MOST_IN_ONE_READ = 4 * 2**20  # a forged tar header may ask for gigabytes at once
UNREADABLE = (
    OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile,
    NotImplementedError, RuntimeError, ValueError,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What an archive may contain at most. ratio: bytes unpacked for each byte of the archive."""

    members: int = 200_000
    total_bytes: int = 8 * 2**30
    ratio: float = 100.0
    depth: int = 16


LIMITS = Limits()


@dataclass(frozen=True)
class _Member:
    name: str
    folder: bool
    stream: IO[bytes] | None


def unpack(archive: Path, target: Path, limits: Limits = LIMITS) -> list[Path]:
    """The files that the archive (.zip, .tar, .tar.gz, .tgz) put under target."""
    target.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=target))
    try:
        names = _unpack_into(archive, staging, limits)
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(staging / name, target / name)
        return [target / name for name in names]
    except InputError:
        raise
    except UNREADABLE as error:
        raise InputError(f"{archive}: cannot be unpacked ({error}). Fetch it again.") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _unpack_into(archive: Path, staging: Path, limits: Limits) -> list[PurePosixPath]:
    allowed = min(limits.total_bytes, int(limits.ratio * archive.stat().st_size))
    taken: dict[str, bool] = {}  # the folded name of everything there is, and whether it is a folder
    names: list[PurePosixPath] = []
    for count, member in enumerate(_members(archive, allowed), start=1):
        if count > limits.members:
            raise _refused(archive, member.name, f"more than {limits.members} members")
        path = _checked(archive, member, taken, limits)
        if member.folder:
            (staging / path).mkdir(parents=True, exist_ok=True)
            continue
        assert member.stream is not None
        (staging / path).parent.mkdir(parents=True, exist_ok=True)
        with (staging / path).open("xb") as out:
            while block := member.stream.read(BLOCK):
                allowed -= len(block)
                if allowed < 0:
                    raise _refused(archive, member.name, "far more bytes than an archive of its size should hold")
                out.write(block)
        names.append(path)
    return names


def _members(archive: Path, allowed: int) -> Iterator[_Member]:
    if zipfile.is_zipfile(archive):
        yield from _zip_members(archive)
        return
    with archive.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        forward = _Forward(gzip.GzipFile(fileobj=raw) if packed else raw, archive, allowed)
        with tarfile.open(fileobj=forward, mode="r:") as tar:  # type: ignore[call-overload]
            while (member := tar.next()) is not None:
                tar.members = []  # or it would keep every header it has seen
                if not (member.isdir() or member.isreg()) or member.issparse():
                    raise _refused(archive, member.name, "a link, a device or another special file")
                yield _Member(member.name, member.isdir(), None if member.isdir() else tar.extractfile(member))


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or (kind == stat.S_IFDIR and not member.is_dir()):
                raise _refused(archive, member.filename, "a link, a device or another special file")
            # zipfile mends odd names in silence (a NUL ends them, a backslash may become a slash).
            if member.orig_filename != member.filename:
                raise _refused(archive, member.orig_filename, "a name that systems read differently")
            if member.flag_bits & 1:
                raise _refused(archive, member.filename, "encryption")
            if member.is_dir():
                yield _Member(member.filename, True, None)
            else:
                with packed.open(member) as stream:
                    yield _Member(member.filename, False, stream)


def _checked(archive: Path, member: _Member, taken: dict[str, bool], limits: Limits) -> PurePosixPath:
    """The member's path, relative, plain, and unlike every other even where capitals do not count."""
    name = member.name
    path = PurePosixPath(name)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or path.is_absolute() or ":" in name or "\\" in name:
        raise _refused(archive, name, "an absolute name, or one that some systems read as such")
    if ".." in parts or (not parts and not member.folder):
        raise _refused(archive, name, "a name that leads out of the folder")
    if any(unicodedata.category(letter) == "Cc" for letter in name) or any(part[-1] in ". " for part in parts):
        raise _refused(archive, name, "a name that systems read differently")
    if len(parts) > limits.depth or any(len(part.encode(errors="replace")) > 255 for part in parts):
        raise _refused(archive, name, "too deep or too long a name")
    folded = [unicodedata.normalize("NFC", part).casefold() for part in parts]
    for end in range(1, len(folded) + 1):
        place, inner = "/".join(folded[:end]), end < len(folded)
        if place in taken and not (taken[place] and (inner or member.folder)):
            raise _refused(archive, name, "a name that is already taken")
        taken[place] = inner or member.folder
    return PurePosixPath(*parts)


def _refused(archive: Path, name: str, reason: str) -> InputError:
    return InputError(f"{archive}: member {name!r} is refused: {reason}. Nothing was unpacked.")


class _Forward:
    """A stream that tarfile can only read onwards, in small pieces, up to a limit."""

    def __init__(self, stream: BinaryIO | gzip.GzipFile, archive: Path, allowed: int) -> None:
        self.stream, self.archive = stream, archive
        self.position, self.limit = 0, 2 * allowed + BLOCK  # headers count here too

    def read(self, size: int) -> bytes:
        if size > MOST_IN_ONE_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        content = self.stream.read(size)
        self.position += len(content)
        if self.position > self.limit:
            raise InputError(f"{self.archive}: far more bytes than an archive of its size should hold")
        return content

    def tell(self) -> int:
        return self.position

    def seek(self, position: int) -> int:
        while self.position < position and self.read(min(BLOCK, position - self.position)):
            pass
        return self.position
