"""One prepared split in one file that is mapped, not read.

The file is: pixels, labels (int64, little endian), a JSON description, its length (8 bytes), a mark
(8 bytes), and the SHA-256 of all that comes before it. The hash stands last, so that a set of any size
is written in one pass; it is checked at every opening, so that damage is found and not trained on.
"""

import hashlib
import json
import math
import os
from pathlib import Path
from typing import IO

import numpy as np
import torch

from linocut.data.dataset import Images, content_digest
from linocut.data.plan import Plan, Progress
from linocut.files import beside

MARK = b"linocut1"
FOOTER = 8 + len(MARK) + 32
BLOCK = 16 * 2**20


def write(path: Path, plan: Plan, key: str, progress: Progress | None = None) -> None:
    """Decode the plan into a file that appears under its name whole or not at all."""
    with beside(path) as unfinished, unfinished.open("wb") as stream:
        digest = hashlib.sha256()
        labels = []
        for pixels, part in plan.batches(progress):
            _put(stream, digest, pixels.reshape(-1).data)
            labels.append(part)
        joined = np.concatenate(labels).astype("<i8") if labels else np.empty(0, "<i8")
        _put(stream, digest, joined.tobytes())
        description = {
            "key": key,
            "name": plan.name,
            "split": plan.split,
            "classes": plan.classes,
            "shape": (len(joined), *plan.shape),
            "notes": plan.outcome(len(joined)),
        }
        text = json.dumps(description).encode()
        _put(stream, digest, text + len(text).to_bytes(8, "little") + MARK)
        stream.write(digest.digest())


def read(path: Path, key: str) -> Images | None:
    """The mapped set, or None where the file is absent, unreadable, of another key, cut short or changed."""
    try:
        with path.open("rb") as stream:
            return _read(stream, key)
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        return None  # the description is read before the hash can be checked: it may say anything


def _read(stream: IO[bytes], key: str) -> Images | None:
    size = stream.seek(0, os.SEEK_END)
    if size < FOOTER:
        return None
    stream.seek(size - FOOTER)
    footer = stream.read(FOOTER)
    text_size = int.from_bytes(footer[:8], "little")
    if footer[8:-32] != MARK or text_size > size - FOOTER:
        return None
    stream.seek(size - FOOTER - text_size)
    about = json.loads(stream.read(text_size))
    shape = tuple(int(n) for n in about["shape"])
    count, pixel_bytes = shape[0], math.prod(shape)
    if about["key"] != key or size != pixel_bytes + 8 * count + text_size + FOOTER:
        return None
    # Copy on write: torch wants memory it may write to, and the file must never change.
    content = np.memmap(stream, np.uint8, mode="c", shape=(size,))
    digest = _hash(hashlib.sha256(), content[: pixel_bytes + 8 * count])
    set_hash = content_digest(digest, shape)
    if _hash(digest, content[pixel_bytes + 8 * count : -32]).digest() != footer[-32:]:
        return None
    labels = content[pixel_bytes : pixel_bytes + 8 * count].view("<i8").astype(np.int64)
    return Images(
        pixels=torch.from_numpy(content[:pixel_bytes].reshape(shape)),
        labels=torch.from_numpy(labels),
        classes=tuple(about["classes"]),
        name=about["name"],
        split=about["split"],
        sha256=set_hash,
        notes=tuple(about["notes"]),
    )


def _put(stream: IO[bytes], digest: "hashlib._Hash", content: bytes | memoryview) -> None:
    stream.write(content)
    digest.update(content)


def _hash(digest: "hashlib._Hash", content: np.ndarray) -> "hashlib._Hash":
    for start in range(0, len(content), BLOCK):
        digest.update(content[start : start + BLOCK].data)
    return digest
