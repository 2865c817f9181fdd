"""Safetensors files written piece by piece and hashed on the way: a canvas may be larger than memory."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

import torch

from linocut.files import whole_file
from linocut.models.tensors import NAMES

PIECE = 1 << 24  # bytes copied at a time


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> str:
    """Write the tensors as a safetensors file, whole or not at all, and return its SHA-256."""
    return write_gathered(path, {name: (tensor, None) for name, tensor in tensors.items()})


def write_gathered(path: Path, parts: Mapping[str, tuple[torch.Tensor, torch.Tensor | None]]) -> str:
    """The same for the chosen rows of each tensor; None chooses all, and the rest is never copied at once."""
    header, offset = {}, 0
    for name, (tensor, rows) in parts.items():
        shape = list(tensor.shape) if rows is None else [len(rows), *tensor.shape[1:]]
        length = torch.Size(shape).numel() * tensor.dtype.itemsize
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": shape,
            "data_offsets": [offset, offset + length],
        }
        offset += length
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256()
    with whole_file(path) as unfinished, open(unfinished, "wb") as stream:
        _put(stream, digest, len(text).to_bytes(8, "little") + text)
        for tensor, rows in parts.values():
            for piece in _pieces(tensor.detach(), rows):
                _put(stream, digest, piece.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _pieces(tensor: torch.Tensor, rows: torch.Tensor | None) -> Iterable[torch.Tensor]:
    if tensor.ndim == 0 or tensor.numel() == 0:
        yield tensor.reshape(-1)
        return
    each = max(1, PIECE // (tensor[0].numel() * tensor.dtype.itemsize))
    if rows is None:
        yield from tensor.split(each)
    else:
        for chosen in rows.to(tensor.device).split(each):
            yield tensor[chosen]


def _put(stream: BinaryIO, digest: "hashlib._Hash", content: bytes | memoryview) -> None:
    stream.write(content)
    digest.update(content)
