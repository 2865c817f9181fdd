"""What a ledger keeps for figures, by entry and example; images of the broken rows and the natural ones."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import torch

from linocut.errors import InputError
from linocut.evaluation import shards
from linocut.evaluation.pictures import Pictures

Kept = dict[str, torch.Tensor]


class Sidecar:
    """The folders figures/ and images/ of one ledger, read when asked; empty where a ledger has none."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._read: dict[str, dict[int, Kept]] = {}

    @property
    def exists(self) -> bool:
        return (self.folder / "figures").is_dir()

    def of(self, entry: str) -> dict[int, Kept]:
        """The tensors of an entry's figures, by example: image, and trace, transformed, palette where there are."""
        if entry not in self._read:
            found: dict[int, Kept] = {}
            for path in shards.all_of(self.folder, "figures", entry):
                shard = shards.read(path)
                _check(shard, path)
                for place, example in enumerate(shard.pop("example").tolist()):
                    found[example] = {name: _single(tensor[place]) for name, tensor in shard.items()}
            self._read[entry] = found
        return self._read[entry]

    @cached_property
    def natural(self) -> dict[int, torch.Tensor]:
        """The natural images of the sample that figures show, float (C,H,W)."""
        return {example: kept["image"] for example, kept in self.of("clean").items()}

    @cached_property
    def _pictures(self) -> Pictures:
        return Pictures.of(self.folder)

    def attacked(self, entry: str) -> Iterator[tuple[list[int], torch.Tensor, torch.Tensor]]:
        """Examples, their natural images and those the entry made of them, both float (B,C,H,W), a batch at a time."""
        for number in self._pictures.batches(entry):
            natural, kept = self._pictures.natural_of(number), self._pictures.adversarial(entry, number)
            if natural is None or kept is None:
                continue
            where = f"{self.folder}: batch {number} of {entry}"
            _check(kept, where)
            place = {example: i for i, example in enumerate(natural["example"].tolist())}
            examples = kept["example"].tolist()
            if not place.keys() >= set(examples):
                raise InputError(f"{where} holds examples that the natural images do not: one of them is damaged")
            yield examples, natural["pixels"][[place[e] for e in examples]].float() / 255, kept["image"].float()


def _single(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor  # packed ledgers keep halves


def _check(shard: Kept, where: object) -> None:
    """InputError unless the shard holds as many images as examples, grey or in colour."""
    image, example = shard.get("image"), shard.get("example")
    sound = (
        image is not None
        and example is not None
        and image.ndim == 4
        and image.shape[1] in (1, 3)
        and image.is_floating_point()
        and all(len(tensor) == len(example) for tensor in shard.values())
    )
    if not sound:
        raise InputError(f"{where} is no shard of figures or images that this version reads: it is damaged")
