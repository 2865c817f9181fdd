"""A codebook on disk: JSON with a hash of itself, written whole or not at all, read without trust."""

import hashlib
import json
from pathlib import Path
from typing import Any

from linocut.errors import InputError
from linocut.files import write_whole

FORMAT = "linocut-codebook-1"
MOST_BYTES = 1 << 20


def write(path: Path, content: dict[str, Any]) -> None:
    """Write colours and origin under the name `path`; the old file stays whole until the new one is."""
    body = {"format": FORMAT, **content}
    text = json.dumps({**body, "sha256": _seal(body)}, indent=1)
    write_whole(path, (text + "\n").encode())


def read(path: Path) -> dict[str, Any]:
    """The colours and the origin in this file."""
    try:
        with path.open("rb") as stream:
            text = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; wanted a saved codebook") from error
    try:
        body = json.loads(text) if len(text) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or set(body) != {"format", "colors", "origin", "sha256"} or body["format"] != FORMAT:
        raise InputError(f"{path}: not a codebook of this version ({FORMAT}); make one with `linocut codebook fit`")
    if body.pop("sha256") != _seal(body):
        raise InputError(f"{path}: changed or damaged since it was written (its hash differs); fit it again")
    _check_origin(path, body["origin"], body["colors"])
    return {"colors": body["colors"], "origin": body["origin"]}


def _check_origin(path: Path, origin: Any, colors: Any) -> None:
    """Raise InputError unless the origin is what `show` and its figure can tell: a seal can be made by anyone."""
    if not isinstance(origin, dict | None):
        raise InputError(f"{path}: origin must be an object or null")
    population = (origin or {}).get("population")
    if population is None:
        return
    whole = isinstance(population, list) and all(type(held) is int and held >= 0 for held in population)
    if not whole or not isinstance(colors, list) or len(population) != len(colors) or not any(population):
        raise InputError(f"{path}: population must be a whole number of pixels for each code; fit it again")


def _seal(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
