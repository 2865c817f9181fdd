"""Tensors from a safetensors file, its header compared with what is wanted before memory is spent on it.

Where float32 is wanted a file may hold halves: they are float32 again when they are read, to the bit.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path

import torch

from linocut.errors import InputError

MOST_HEADER_BYTES = 16 << 20
NAMES = {
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int8: "I8",
    torch.uint8: "U8",
}

Shapes = Mapping[str, tuple[torch.dtype, tuple[int, ...]]]


def shapes_of(tensors: Mapping[str, torch.Tensor]) -> Shapes:
    """Name -> (dtype, shape); tensors on the meta device will do."""
    return {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}


def without_loss(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in halves if it is float32 and every value of it is a half; else as it is."""
    halves = tensor.half() if tensor.dtype == torch.float32 else tensor
    return halves if torch.equal(halves.to(tensor.dtype), tensor) else tensor


def read_tensors(path: Path, wanted: Shapes, size: int, sha256: str) -> dict[str, torch.Tensor]:
    """The tensors of a file of exactly this size, hash, names, dtypes and shapes; any other is refused."""
    try:
        found = path.stat().st_size
        if found != size:
            raise InputError(f"{path} has {found} bytes, its card says {size}: it is damaged, or not the card's file")
        check_header(path, found, wanted)
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(
            f"{path} is not there ({size} bytes by its card; of large networks the card alone is published): name a "
            "folder that holds both (`verify --model`). What was confirmed beside the weights is in a published "
            "ledger's verification.json"
        ) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    got = hashlib.sha256(content).hexdigest()
    if got != sha256:
        raise InputError(f"{path} has SHA-256 {got}, its card says {sha256}: it is damaged or was exchanged")
    import safetensors.torch  # only where weights are read: `import linocut` needs torch and NumPy alone

    try:
        tensors = safetensors.torch.load(content)
    except safetensors.SafetensorError as error:
        raise InputError(f"{path} is not a safetensors file: {error}") from error
    return {name: tensor.to(wanted[name][0]) for name, tensor in tensors.items()}


def check_header(path: Path, size: int, wanted: Shapes) -> None:
    """Raise InputError unless the file declares exactly the wanted tensors and ends with them."""
    with open(path, "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= min(MOST_HEADER_BYTES, size - 8):
            raise InputError(f"{path} is not a safetensors file: its header would have {length} bytes")
        try:
            header = json.loads(stream.read(length))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is not a safetensors file: {error}") from error
    if not isinstance(header, dict):
        raise InputError(f"{path} is not a safetensors file: its header is no object")
    header.pop("__metadata__", None)
    missing, extra = sorted(set(wanted) - set(header)), sorted(set(header) - set(wanted))
    if missing or extra:
        raise InputError(f"{path} does not fit: missing {missing[:3] or 'nothing'}, too many {extra[:3] or 'none'}")
    total = 0
    for name, (dtype, shape) in wanted.items():
        entry = header[name] if isinstance(header[name], dict) else {}
        got = (entry.get("dtype"), entry.get("shape"))
        held = torch.float16 if dtype == torch.float32 and got[0] == "F16" else dtype
        if got != (NAMES[held], list(shape)):
            raise InputError(f"{path}: {name} is {got[0]} {got[1]}, wanted {NAMES[dtype]} {list(shape)}")
        total += math.prod(shape) * held.itemsize
    if 8 + length + total != size:
        raise InputError(f"{path} has {size} bytes, its header speaks of {8 + length + total}")
