"""A codebook on disk: JSON with a hash of itself, written whole or not at all, read without trust."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from linocut.errors import InputError

FORMAT = "linocut-codebook-1"
MOST_BYTES = 1 << 20


def write(path: Path, content: dict[str, Any]) -> None:
    """Write colours and origin under the name `path`; the old file stays whole until the new one is."""
    body = {"format": FORMAT, **content}
    text = json.dumps({**body, "sha256": _seal(body)}, indent=1)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def read(path: Path) -> dict[str, Any]:
    """The colours and the origin in this file."""
    try:
        with path.open("rb") as stream:
            text = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; wanted a saved codebook") from error
    try:
        body = json.loads(text) if len(text) <= MOST_BYTES else None
    except ValueError:
        body = None
    if not isinstance(body, dict) or set(body) != {"format", "colors", "origin", "sha256"} or body["format"] != FORMAT:
        raise InputError(f"{path}: not a codebook of this version ({FORMAT}); make one with `linocut codebook fit`")
    if body.pop("sha256") != _seal(body):
        raise InputError(f"{path}: changed or damaged since it was written (its hash differs); fit it again")
    if not isinstance(body["origin"], dict | None):
        raise InputError(f"{path}: origin must be an object or null")
    return {"colors": body["colors"], "origin": body["origin"]}


def _seal(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
