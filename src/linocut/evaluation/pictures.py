"""The kept images of a ledger by batch, whether they lie there as they were made or packed.

A packed ledger (packing.py) shares one file of natural images with others, and keeps an adversarial image as its
change against the natural one, modulo 256, where it was rounded to whole grey levels:

    packed.natural                               example (N), label (N), pixels uint8 (N,C,H,W), in the sample's order
    images/linf.pgd-ce-1/00003.safetensors.xz    example (K), rounded uint8 (K), change uint8 (R,C,H,W) of those that
                                                 were rounded, image float32 (K-R,C,H,W) of the others
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.evaluation import shards
from linocut.evaluation.case import unit
from linocut.evaluation.xz import SUFFIX

NATURAL = "natural"


class Pictures:
    """Natural and adversarial images of one folder, each batch as a shard (see shards.py)."""

    def __init__(self, folder: Path, header: dict[str, Any]):
        self.folder, self.header = folder, header
        self.packed: dict[str, Any] | None = header.get("packed")

    @classmethod
    def of(cls, folder: Path) -> "Pictures":
        """Those of a ledger's folder."""
        return cls(folder, headers.read(folder))

    def natural(self) -> Iterator[tuple[int, shards.Tensors]]:
        """The number of each batch and its natural images: example, label, pixels."""
        if self.packed is not None:
            yield from self._shared.items()
            return
        for number in self.batches(NATURAL):
            yield number, shards.read(self._path(NATURAL, number))

    def natural_of(self, number: int) -> shards.Tensors | None:
        """The natural images of a batch; None where there are none."""
        if self.packed is not None:
            return self._shared.get(number)
        path = self._path(NATURAL, number)
        return shards.read(path) if path.exists() else None

    def batches(self, entry: str) -> list[int]:
        """The batches of which an entry keeps images."""
        ending = ".safetensors" + (SUFFIX if self.packed is not None else "")
        return sorted(int(path.name.partition(".")[0]) for path in self._path(entry, 0).parent.glob(f"*{ending}"))

    def adversarial(self, entry: str, number: int) -> shards.Tensors | None:
        """The adversarial images of an entry in a batch: example (K), image float32 (K,C,H,W); None without any."""
        path = self._path(entry, number)
        if not path.exists():
            return None
        shard = shards.read(path)
        return shard if self.packed is None else unpacked(shard, self.natural_of(number), path)

    def _path(self, entry: str, number: int) -> Path:
        plain = shards.path_of(self.folder, "images", entry, number)
        return plain if self.packed is None else plain.with_name(plain.name + SUFFIX)

    @cached_property
    def _shared(self) -> dict[int, shards.Tensors]:
        """The kept images of a packed ledger, cut as its sample was."""
        assert self.packed is not None
        path, many, size = self.folder / self.packed["natural"], self.packed["images"], self.header["settings"]
        shard = shards.read(path)
        if len(shard["example"]) < many:
            raise InputError(f"{path} holds {len(shard['example'])} images, {self.folder} stands on {many}")
        batch = size["batch_size"]
        return {
            first // batch: {name: tensor[first : min(first + batch, many)] for name, tensor in shard.items()}
            for first in range(0, many, batch)
        }


def changes(levels: torch.Tensor, natural: torch.Tensor) -> torch.Tensor:
    """What was added to natural images (uint8) to make others of whole levels (uint8), modulo 256."""
    return levels - natural


def unpacked(shard: shards.Tensors, natural: shards.Tensors | None, path: Path) -> shards.Tensors:
    """The images of a packed shard as float32, in its order."""
    examples = shard["example"].tolist()
    place = {} if natural is None else {example: i for i, example in enumerate(natural["example"].tolist())}
    rounded = shard["rounded"].bool()
    sound = place.keys() >= set(examples) and len(rounded) == len(examples)
    if not sound or (len(shard["change"]), len(shard["image"])) != (int(rounded.sum()), int((~rounded).sum())):
        raise InputError(f"{path} does not fit the natural images it was packed with: one of them is damaged")
    assert natural is not None
    start = natural["pixels"][[place[example] for example in examples]]
    image = torch.empty(start.shape, dtype=torch.float32)
    image[rounded] = unit(start[rounded] + shard["change"])
    image[~rounded] = shard["image"]
    return {"example": shard["example"], "image": image}
