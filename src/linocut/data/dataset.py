"""What every reader returns: pixels, labels, names, and the hash that says which data this was."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from linocut.errors import InputError


@dataclass(frozen=True, kw_only=True, eq=False)
class Images:
    """One split of a labelled image set.

    pixels: uint8 (N, C, H, W), possibly memory-mapped. labels: int64 (N,), indices into classes.
    sha256: of the pixels, the labels and the shape; equal hashes mean equal data, however it was stored.
    notes: what was done to the files, for people.
    """

    pixels: torch.Tensor
    labels: torch.Tensor
    classes: tuple[str, ...]
    name: str
    split: str
    sha256: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.pixels.dtype != torch.uint8 or self.pixels.ndim != 4:
            raise InputError(f"pixels must be uint8 (N, C, H, W), got {self.pixels.dtype} {tuple(self.pixels.shape)}")
        if 0 in self.pixels.shape[1:]:
            raise InputError(f"{self.name} {self.split}: images of {tuple(self.pixels.shape[1:])} have no pixels")
        if self.labels.dtype != torch.int64 or self.labels.shape != self.pixels.shape[:1]:
            raise InputError(
                f"labels must be int64, one for each of {len(self.pixels)} images, "
                f"got {self.labels.dtype} {tuple(self.labels.shape)}"
            )
        if len(self.labels) and not 0 <= int(self.labels.min()) <= int(self.labels.max()) < len(self.classes):
            raise InputError(
                f"{self.name} {self.split}: labels must lie in 0..{len(self.classes) - 1} "
                f"for {len(self.classes)} classes, got {int(self.labels.min())}..{int(self.labels.max())}"
            )

    def __len__(self) -> int:
        return len(self.pixels)

    def unit(self, index: int | slice | Sequence[int] | torch.Tensor = slice(None)) -> torch.Tensor:
        """The chosen images as float32 in [0, 1], on the device the pixels live on."""
        chosen = torch.as_tensor(index) if isinstance(index, list | tuple) else index
        return self.pixels[chosen].float().div_(255)


def from_arrays(
    *,
    pixels: np.ndarray,
    labels: np.ndarray,
    classes: tuple[str, ...],
    name: str,
    split: str,
    notes: tuple[str, ...] = (),
) -> Images:
    """Images around these arrays, which are uint8 (N, C, H, W) and whole numbers (N,)."""
    pixels = np.ascontiguousarray(pixels)
    labels = np.ascontiguousarray(labels, dtype=np.int64)
    content = hashlib.sha256(pixels.reshape(-1).data)
    content.update(labels.tobytes())
    return Images(
        pixels=torch.from_numpy(pixels),
        labels=torch.from_numpy(labels),
        classes=classes,
        name=name,
        split=split,
        sha256=content_digest(content, pixels.shape),
        notes=notes,
    )


def content_digest(seen: "hashlib._Hash", shape: tuple[int, ...]) -> str:
    """The hash of a set, given the hash object that has seen its pixels and then its labels."""
    whole = seen.copy()
    whole.update(repr(tuple(int(n) for n in shape)).encode())
    return whole.hexdigest()
