"""A ledger made small: every row, and the images of the first examples of its sample, most of them in whole levels.
Of the very first ones what a report shows.

Where an image was rounded, it is another than the attack returned, so its row carries its own digest; it lies in the
same ball, and the same model misclassifies it in the batch in which `verify` will ask. pictures.py reads all this.
"""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError
from linocut.evaluation import columns, shards, xz
from linocut.evaluation import header as headers
from linocut.evaluation.case import Model, at_rest, unit
from linocut.evaluation.levels import in_levels
from linocut.evaluation.pictures import Pictures, changes
from linocut.evaluation.record import Record
from linocut.evaluation.rows import Row
from linocut.evaluation.verify import claims
from linocut.files import write_whole

MOST_WEIGHTS = 10_000_000  # bytes that are published; of a larger network the card alone is, which has their hash
NOTE = (
    "images in whole grey levels are not those the attacks returned, but lie in the same ball and are misclassified "
    "too; a row's image is the digest of the packed one; a row of an example that is not packed has none"
)


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """What there is to pack of one ledger: the examples that are kept, in the sample's order, and their batches."""

    folder: Path
    record: Record
    kept: tuple[int, ...]
    batch_size: int

    @classmethod
    def of(cls, folder: Path, record: Record, images: int) -> "Parcel":
        """The first `images` examples of a finished ledger."""
        if record.packed is not None:
            raise InputError(f"{folder} is packed already")
        sample = record.sample
        if set(record.of["clean"]) != set(sample.order):
            raise InputError(f"{folder} is not finished: only a finished ledger can be packed")
        return cls(folder=folder, record=record, kept=sample.order[:images], batch_size=sample.batch_size)

    def natural(self) -> shards.Tensors:
        """The natural images that are kept: example, label, pixels."""
        pictures, wanted = Pictures.of(self.folder), -(-len(self.kept) // self.batch_size)
        parts = [pictures.natural_of(number) for number in range(wanted)]
        found = {
            example: (part["label"][i], part["pixels"][i])
            for part in parts
            if part is not None
            for i, example in enumerate(part["example"].tolist())
        }
        if not found.keys() >= set(self.kept):
            raise InputError(f"{self.folder} lacks natural images of its first {len(self.kept)} examples")
        labels, pixels = zip(*(found[example] for example in self.kept), strict=True)
        return {"example": torch.tensor(self.kept), "label": torch.stack(labels), "pixels": torch.stack(pixels)}


def pack(
    parcel: Parcel, target: Path, model: Model, device: torch.device, *, header: Mapping[str, Any], natural: str
) -> Record:
    """The packed ledger, written in the folder `target`.

    header: what it is to say, in the words of its new place; natural: the file of natural images, relative to it,
    which begins with parcel.natural().
    """
    record, bench = parcel.record, _Bench(parcel, model, device)
    written: list[tuple[Path, shards.Tensors]] = []
    kept_claims, all_claims = len(parcel.kept), len(record.of["clean"])
    with at_rest(model):
        for norm, name, every in claims(record):
            by_batch = bench.by_batch(every)
            kept_claims += sum(map(len, by_batch.values()))
            all_claims += len(every)
            threat = ThreatModel(norm, record.entries[name]["eps"])  # type: ignore[arg-type]
            for number, rows in by_batch.items():
                shard = bench.shard(name, number, rows, threat)
                path = shards.path_of(target, "images", name, number)
                if shard is not None:
                    written.append((path.with_name(path.name + xz.SUFFIX), shard))
    written += pictured(parcel, target)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda pair: shards.write(*pair), written))
    rows = [replace(row, image=bench.digests.get(row.key)) for row in record.rows]
    columns.write(target, rows, record.settings["seed"])
    told = {"images": len(parcel.kept), "of": len(record.of["clean"]), "natural": natural}
    told |= {"rounded": bench.rounded, "exact": len(bench.digests) - bench.rounded}
    told |= {"claims": kept_claims, "left_out": all_claims - kept_claims, "rows": len(rows), "note": NOTE}
    full = {**header, "packed": told}
    write_whole(target / headers.NAME, json.dumps(full, indent=1).encode())
    return Record(full, rows)


def pictured(parcel: Parcel, target: Path) -> list[tuple[Path, shards.Tensors]]:
    """What a report shows of the first examples, in halves: natural images, the published attack, whatever broke them.

    Of twice as many steps the losses are shown too.
    """
    record, found = parcel.record, []
    whole = {name for norm in record.norms for name in (*record.published(norm), f"{norm}/double-steps")} | {"clean"}
    counting = {name for norm in record.norms for name in record.counting(norm)}
    for name in record.entries:
        broken = {row.example for row in record.of[name].values() if row.broken and name in counting}
        for path in sorted(shards.path_of(parcel.folder, "figures", name, 0).parent.glob("*.safetensors")):
            shard = shards.read(path)
            kept = [i for i, example in enumerate(shard["example"].tolist()) if name in whole or example in broken]
            if kept:
                place = target / path.relative_to(parcel.folder)
                found.append((place.with_name(place.name + xz.SUFFIX), _in_halves(shard, kept)))
    return found


def _in_halves(shard: shards.Tensors, kept: list[int]) -> shards.Tensors:
    exact = {"trace"} | {name for name, tensor in shard.items() if not tensor.is_floating_point()}
    return {name: tensor[kept] if name in exact else tensor[kept].half() for name, tensor in shard.items()}


class _Bench:
    """Where the shards of one ledger are packed; remembers the digest of every packed image."""

    def __init__(self, parcel: Parcel, model: Model, device: torch.device):
        self.model, self.device, self.batch_size = model, device, parcel.batch_size
        self.pictures, self.pixels = Pictures.of(parcel.folder), parcel.natural()["pixels"]
        self.place = {example: i for i, example in enumerate(parcel.kept)}
        self.digests: dict[tuple[str, int], str] = {}
        self.rounded = 0

    def by_batch(self, rows: list[Row]) -> dict[int, list[Row]]:
        """The rows of kept examples by the number of their batch, in the sample's order."""
        kept = sorted((row for row in rows if row.example in self.place), key=lambda row: self.place[row.example])
        found: dict[int, list[Row]] = {}
        for row in kept:
            found.setdefault(self.place[row.example] // self.batch_size, []).append(row)
        return found

    def shard(self, name: str, number: int, rows: list[Row], threat: ThreatModel) -> shards.Tensors | None:
        """The packed images of some rows of a batch; an image that was missing is missing still, and will fail."""
        held = self.pictures.adversarial(name, number)
        at = {} if held is None else {example: i for i, example in enumerate(held["example"].tolist())}
        rows = [row for row in rows if row.example in at]
        if held is None or not rows:
            return None
        images = held["image"][[at[row.example] for row in rows]]
        pixels = self.pixels[[self.place[row.example] for row in rows]]
        labels = torch.tensor([row.label for row in rows])
        there = self.device
        found = in_levels(self.model, images.to(there), pixels.to(there), labels.to(there), threat)
        levels, rounded = (tensor.cpu() for tensor in found)
        final = torch.where(rounded[:, None, None, None], unit(levels), images)
        self.digests |= {row.key: shards.digest(image) for row, image in zip(rows, final, strict=True)}
        self.rounded += int(rounded.sum())
        return {
            "example": torch.tensor([row.example for row in rows]),
            "rounded": rounded.to(torch.uint8),
            "change": changes(levels, pixels)[rounded],
            "image": images[~rounded],
        }
