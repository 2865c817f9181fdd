"""One work put among the results: its networks as they are, its ledgers verified, packed, and verified again."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from posixpath import relpath
from typing import Any

import torch

from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.evaluation import shards
from linocut.evaluation.packing import MOST_WEIGHTS, Parcel, pack
from linocut.evaluation.record import Record
from linocut.evaluation.verify import Verification, judge_of, verify
from linocut.files import write_whole
from linocut.recipes.publish.catalogue import Catalogue, data_set_of, made_on
from linocut.recipes.publish.finished import Finished
from linocut.recipes.publish.wording import Wording, roots_of
from linocut.recipes.reproduce.step import remove

BESIDE = ("config.json", "log.jsonl", "curves.png", "codebook.json")  # a network, as far as they are there
NATURAL = "natural.safetensors.xz"
VERIFICATION = "verification.json"


@dataclass(frozen=True, kw_only=True)
class Verified:
    """The verification of a ledger before it was packed, and after."""

    whole: Verification
    packed: Verification

    def __str__(self) -> str:
        whole, packed = (f"{each.confirmed} of {each.claims}" for each in (self.whole, self.packed))
        return f"{whole} claims confirmed, {packed} once packed"


class Packer:
    """Packs works of one reproduction into one folder of results."""

    def __init__(
        self, out: Path, results: Path, catalogue: Catalogue, device: torch.device, tell: Callable[[str], None]
    ):
        self.out, self.results, self.catalogue, self.device, self.tell = out, results, catalogue, device, tell
        self.verified: dict[str, Verified] = {}

    def put(self, found: Finished) -> list[Record]:
        """Puts a work and the networks it stands on in their places; the packed ledgers."""
        place = found.work.place
        self.catalogue.works.pop(place, None)
        remove((self.results / place).glob("ledger-*"))
        records = [self._ledger(place, name) for name in found.ledgers]
        for network in found.networks:
            put_network(self.out, self.results, self.catalogue, network, found.hashes[f"{network}/model"])
        self.catalogue.works[place] = {
            "note": found.work.note,
            "ledgers": list(found.ledgers),
            "hashes": found.hashes,
            "made": made_on(self.device),
        }
        self.catalogue.write(self.results)
        return records

    def _ledger(self, place: str, name: str) -> Record:
        folder, target = self.out / place / name, self.results / place / name
        self.tell(f"{place}/{name}")
        record = Record.read(folder)
        model = judge_of(folder, self.device, str(self.out / place / "model"))
        whole = verify(folder, model, self.device, record)
        parcel = Parcel.of(folder, record, self.catalogue.images)
        put_natural(parcel.natural(), self.results / data_set_of(place) / NATURAL, folder)
        natural = relpath(f"{data_set_of(place)}/{NATURAL}", f"{place}/{name}")
        header = self._header(place, name, headers.read(folder))
        packed = pack(parcel, target, model, self.device, header=header, natural=natural)
        found = Verified(whole=whole, packed=verify(target, model, self.device, packed))
        told = {**asdict(whole), "packed": asdict(found.packed), "made": made_on(self.device)}
        write_whole(target / VERIFICATION, json.dumps(told, indent=1).encode())
        self.verified[f"{place}/{name}"] = found
        return packed

    def _header(self, place: str, name: str, held: dict[str, Any]) -> dict[str, Any]:
        """The header in words that hold below the folder of results."""
        settings, made = held["settings"], held["made_with"]
        origin = str(Path(settings["model"])).removesuffix(f"/{place}/model")
        wording = Wording([self.out, origin], roots_of([made.get("repeat")]))
        twin = settings["twin"] and relpath(wording.word(settings["twin"]), f"{place}/{name}")
        told = {"model": "../model", "twin": twin}
        words = {"command": wording.command(made["command"]), "repeat": [wording.word(w) for w in made["repeat"] or []]}
        return {**held, "settings": settings | told, "made_with": made | words}


def put_network(source: Path, results: Path, catalogue: Catalogue, place: str, made: str) -> None:
    """Puts the network of a place and what was written beside it among the results, unless it is there."""
    target = results / place
    if catalogue.networks.get(place) == made and (target / "model").is_dir():
        return
    remove([target / "model", *(target / name for name in BESIDE)])
    shutil.copytree(source / place / "model", target / "model", ignore=_left_behind)
    for name in BESIDE:
        if (source / place / name).exists():
            shutil.copyfile(source / place / name, target / name)
    catalogue.networks[place] = made


def put_natural(mine: dict[str, torch.Tensor], path: Path, source: Path) -> None:
    """Puts natural images of a data set there; those that lie there begin with these, or these with those."""
    there = shards.read(path) if path.exists() else {name: tensor[:0] for name, tensor in mine.items()}
    both = min(len(mine["example"]), len(there["example"]))
    if not all(torch.equal(mine[name][:both], there[name][:both]) for name in mine):
        raise InputError(f"{path} holds other images than {source}: publish into another folder")
    if len(mine["example"]) > both:
        shards.write(path, mine)


def _left_behind(folder: str, names: list[str]) -> list[str]:
    """Hidden files, and weights too large for a repository."""
    return [name for name in names if name.startswith(".") or Path(folder, name).stat().st_size > MOST_WEIGHTS]
