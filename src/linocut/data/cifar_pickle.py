"""CIFAR-10's Python pickles, read without running anything in them.

A pickle names functions and calls them. The official batches name three: NumPy's array constructor, its
array type and its dtype. Here these names lead to two small records that only keep what they are given,
every other name is refused, and the array is built from the kept bytes once the file has been read.
"""

import io
import operator
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np

from linocut.data.places import damaged

LARGEST = 64 * 2**20  # bytes: an official batch has 31 million
MOST_MEMO = 2**20  # a forged memo index would make the unpickler allocate up to it
# Tuples of tuples that repeat one another double with every line, and hashing one would never end.
REPEATING = ("GET", "BINGET", "LONG_BINGET", "DUP")
MOST_REPEATS = 32
WANTED = "an official cifar-10-batches-py file"


class _Kept:
    """What a pickle says of an array or a dtype: the arguments it was made with and its state."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Kept,
    ("numpy", "ndarray"): "ndarray",  # the official files only pass it along
    ("numpy", "dtype"): _Kept,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is refused")
        return ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside itself, which is refused")


def read_pickled_batch(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (N, 3072) and labels (N,) of one batch."""
    if path.stat().st_size > LARGEST:
        raise damaged(path, f"{path.stat().st_size} bytes", f"at most {LARGEST}")
    content = path.read_bytes()
    try:
        _check_stream(content)
        batch = _Unpickler(io.BytesIO(content), encoding="bytes").load()
        pixels = _array(batch[b"data"])
        labels = np.array([operator.index(label) for label in batch[b"labels"]], dtype=np.uint8)
    # A forged stream can fail in any of these ways; none of them may reach the user as a crash.
    except (pickle.UnpicklingError, ValueError, TypeError, KeyError, IndexError, AttributeError,
            EOFError, OverflowError, MemoryError, RecursionError, UnicodeError) as error:  # fmt: skip
        raise damaged(path, f"a pickle that cannot be used ({error})", WANTED) from error
    if pixels.ndim != 2 or pixels.shape[1] != 3072 or labels.shape != pixels.shape[:1]:
        raise damaged(path, f"data {pixels.shape} and labels {labels.shape}", "(N, 3072) and (N,)")
    return pixels, labels


def _check_stream(content: bytes) -> None:
    """Raise UnpicklingError where unpickling could take more memory or time than the stream's length explains."""
    repeats = 0
    for opcode, argument, _ in pickletools.genops(content):
        if "PUT" in opcode.name and int(argument or 0) > MOST_MEMO:
            raise pickle.UnpicklingError(f"it asks for {argument} memo places")
        repeats += opcode.name in REPEATING
    if repeats > MOST_REPEATS:
        raise pickle.UnpicklingError(f"it repeats itself {repeats} times")


def _array(kept: Any) -> np.ndarray:
    """The uint8 array whose pickled state was kept: (version, shape, dtype, column order, bytes)."""
    if not isinstance(kept, _Kept) or not isinstance(kept.state, tuple) or len(kept.state) != 5:
        raise ValueError("its data is no array")
    _, shape, dtype, column_order, content = kept.state
    name = dtype.arguments[0] if isinstance(dtype, _Kept) and dtype.arguments else None
    if name not in (b"u1", "u1") or not isinstance(content, bytes):
        raise ValueError("its data is not of uint8")
    return np.frombuffer(content, np.uint8).reshape(shape, order="F" if column_order else "C")
