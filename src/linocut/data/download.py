"""Fetch a data set, when asked: https only, never more than its published size, resumed, hash-checked."""

import hashlib
import http.client
import os
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from linocut.data.archives import unpack
from linocut.data.catalogue import Entry, RemoteFile, check_address
from linocut.errors import InputError
from linocut.files import write_whole

Progress = Callable[[str, int, int], None]  # file name, bytes there are, bytes there will be
BLOCK = 2**18
SECONDS_OF_SILENCE = 30
UNREACHABLE = (OSError, http.client.HTTPException)


def download(entry: Entry, root: Path, progress: Progress | None = None) -> list[Path]:
    """The files of the set, now under root. What is there already, whole or unpacked, is not fetched again."""
    before = {remote: unpacked(remote, root) for remote in entry.files if remote.unpack}
    fetched = {
        remote: fetch(remote, root / remote.folder / remote.file_name, progress)
        for remote in entry.files
        if not before.get(remote)
    }
    placed: list[Path] = []
    for remote in entry.files:
        if remote not in fetched:
            placed += before[remote]
        elif remote.unpack:
            files = unpack(fetched[remote], root / remote.folder)
            _mark(remote, root, files)
            placed += files
        else:
            placed.append(fetched[remote])
    # Only now: had a later file failed, the earlier ones would have to be fetched again.
    for remote in entry.files:
        if remote.unpack:
            (root / remote.folder / remote.file_name).unlink(missing_ok=True)
    return placed


def unpacked(remote: RemoteFile, root: Path) -> list[Path]:
    """The files that this very archive put under root; none if one of them is missing or changed."""
    try:
        first, *lines = _marker(remote, root).read_text(encoding="utf-8").rstrip("\n").split("\n")
        held = {root / remote.folder / name: told for told, name in (line.split(" ", 1) for line in lines)}
        whole = first == _published(remote) and all(_checksum(path) == told for path, told in held.items())
    except (OSError, ValueError):
        return []
    return list(held) if whole else []


def _mark(remote: RemoteFile, root: Path, files: list[Path]) -> None:
    """Note beside the unpacked files which archive they came from: it is removed, and would be fetched again."""
    lines = [f"{_checksum(path)} {path.relative_to(root / remote.folder).as_posix()}" for path in files]
    write_whole(_marker(remote, root), "\n".join([_published(remote), *lines, ""]).encode())


def _checksum(path: Path) -> str:
    """The file's CRC-32: the archive was checked by its hash, and this tells damage on the disk."""
    return f"{zlib.crc32(path.read_bytes()):08x}"


def _marker(remote: RemoteFile, root: Path) -> Path:
    return root / remote.folder / f".{remote.file_name}.unpacked"


def _published(remote: RemoteFile) -> str:
    return f"sha256 {remote.sha256}" if remote.sha256 else f"md5 {remote.md5}"


def fetch(remote: RemoteFile, path: Path, progress: Progress | None = None) -> Path:
    """The path, once it holds the file of the published size and hash. An interrupted fetch goes on."""
    check_address(remote.url)
    if holds(remote, path):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent}: cannot be made ({error.strerror}); choose another root") from error
    part = path.with_name(path.name + ".part")
    resumed = part.is_file() and part.stat().st_size > 0
    _fill(remote, part, progress)
    if resumed and not holds(remote, part):
        part.unlink()  # the beginning may have come from another version of the file
        _fill(remote, part, progress)
    if not holds(remote, part):
        part.unlink()
        raise InputError(f"{remote.url}: its hash is not the published one; nothing was kept. Try again later.")
    os.replace(part, path)
    return path


def _fill(remote: RemoteFile, part: Path, progress: Progress | None) -> None:
    """Fetch what is still missing from the partial file."""
    have = part.stat().st_size if part.is_file() else 0
    if have > remote.size:
        part.unlink()
        have = 0
    if have == remote.size:
        return
    request = urllib.request.Request(remote.url, headers={"User-Agent": "linocut", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    opener = urllib.request.build_opener(_Redirects)
    try:
        with opener.open(request, timeout=SECONDS_OF_SILENCE) as response:
            start = _start(response, have, remote)
            with part.open("r+b" if start else "wb") as out:
                out.seek(start)
                _copy(response, out, start, remote, progress)
                out.flush()
                os.fsync(out.fileno())
    except UNREACHABLE as error:
        kept = part.stat().st_size if part.is_file() else 0
        raise InputError(
            f"{remote.url}: {error}. {kept} of {remote.size} bytes are kept in {part}; run the command again to go on."
        ) from error


def _start(response: Any, have: int, remote: RemoteFile) -> int:
    """Where in the file the response begins, from its headers; a length that cannot be right is refused."""
    start = 0
    if response.status == 206:
        given = response.headers.get("Content-Range", "")
        if not given.startswith(f"bytes {have}-"):
            raise InputError(f"{remote.url}: asked for the bytes from {have} on, was offered {given!r}")
        start = have
    length = response.headers.get("Content-Length")
    if length is not None and length != str(remote.size - start):
        raise InputError(
            f"{remote.url}: offers {length} bytes from {start} on, of a published file of {remote.size}; "
            f"delete {remote.file_name}.part if there is one, and try again later"
        )
    return start


def _copy(response: Any, out: IO[bytes], done: int, remote: RemoteFile, progress: Progress | None) -> None:
    while block := response.read(BLOCK):
        done += len(block)
        if done > remote.size:
            out.truncate(0)
            raise InputError(f"{remote.url}: sends more than the published {remote.size} bytes; nothing was kept")
        out.write(block)
        if progress:
            progress(remote.file_name, done, remote.size)
    if done < remote.size:
        raise http.client.HTTPException(f"the connection ended after {done} bytes")


def holds(remote: RemoteFile, path: Path) -> bool:
    """Whether the path is this file, by its size and its published hash."""
    if not path.is_file() or path.stat().st_size != remote.size:
        return False
    with path.open("rb") as stream:
        # MD5 says "undamaged" here, no more; on systems that forbid it for security this use stays allowed.
        made = hashlib.sha256() if remote.sha256 else hashlib.md5(usedforsecurity=False)
        while block := stream.read(2**20):
            made.update(block)
    return made.hexdigest() == (remote.sha256 or remote.md5)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to an address that could have been asked for itself."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        check_address(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
