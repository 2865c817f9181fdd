"""published.json: what lies in a folder of results, what it was made of, and what is still open."""

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch

import linocut
from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.files import TEMPORARY_SUFFIX, write_whole
from linocut.models.devices import name_of
from linocut.models.seal import sealed, unsealed

DATA = {"images of": "data", "values an image": "dimensions", "hash": "data_hash", "split": "split", "seed": "seed"}
NAME, FORMAT = "published.json", "linocut-published-1"
_PART = re.compile(r"\w[^/\\]*")  # of a path; no hidden file, not the folder above


@dataclass(kw_only=True)
class Catalogue:
    """The works of a folder of results by place, their networks, the data sets; and the works that are not done."""

    images: int
    made: dict[str, Any]
    data: dict[str, dict[str, Any]] = field(default_factory=dict)
    networks: dict[str, str] = field(default_factory=dict)
    works: dict[str, dict[str, Any]] = field(default_factory=dict)
    open: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def at(cls, results: Path, images: int, device: torch.device) -> "Catalogue":
        """The one that lies there, or a new one; a folder that holds anything else is refused."""
        if results.exists() and not results.is_dir():
            raise InputError(f"{results} is no folder: choose another for the results")
        if not (results / NAME).exists():
            names = sorted(path.name for path in results.iterdir()) if results.is_dir() else []
            others = [name for name in names if not name.endswith(TEMPORARY_SUFFIX)]
            if others:
                raise InputError(f"{results} holds other things ({others[0]}): choose a new or empty folder")
            return cls(images=images, made=made_on(device))
        held = cls.read(results)
        if held.images != images:
            raise InputError(
                f"{results} was published with --images {held.images}, not {images}: repeat that, or choose another"
            )
        return held

    @classmethod
    def read(cls, results: Path) -> "Catalogue":
        """The one that lies there."""
        held = unsealed((results / NAME).read_bytes(), str(results / NAME))
        if held.pop("format", None) != FORMAT or set(held) != {field.name for field in fields(cls)}:
            raise InputError(f"{results / NAME} is of another version: publish into a new folder")
        catalogue = cls(**held)
        catalogue.check_names(results)
        return catalogue

    def forget_removed(self, results: Path) -> list[str]:
        """Drops works and networks whose folders were removed, to make room for others; gives their data sets."""
        gone = [place for place in self.works if not (results / place).exists()]
        self.works = {place: held for place, held in self.works.items() if place not in gone}
        self.networks = {place: made for place, made in self.networks.items() if (results / place).exists()}
        return list(dict.fromkeys(map(data_set_of, gone)))

    def check_names(self, results: Path) -> None:
        """InputError where a name would lead out of the folder: results may come from anywhere."""
        ledgers = [name for held in self.works.values() for name in held["ledgers"]]
        places = [*self.works, *self.networks, *(f"{data_set}/x/x" for data_set in self.data)]
        odd = [name for name in ledgers if not _PART.fullmatch(name)]
        odd += [place for place in places if [bool(_PART.fullmatch(part)) for part in place.split("/")] != [True] * 3]
        if odd:
            raise InputError(f"{results / NAME} names {odd[0]!r}, which is no place among results")

    def write(self, results: Path) -> None:
        """Puts it in its place."""
        content = {"format": FORMAT, **self.__dict__}
        write_whole(results / NAME, sealed(content))

    def settle_data(self, data_set: str, found: dict[str, Any]) -> None:
        """Takes note of the data of ledgers; InputError names what differs from what was published before."""
        for name, value in found.items():
            before = self.data.get(data_set, found)[name]
            if before != value:
                raise InputError(
                    f"{data_set} was published with {name} {before}, and is to be now with {value}: "
                    "publish into another folder"
                )
        self.data[data_set] = found

    def check_networks(self, new: Mapping[str, Mapping[str, str]]) -> None:
        """InputError if a network would be replaced on which a work stands that stays as it is.

        new: the hashes of the steps of each work that is to come, by its place.
        """
        staying = {place: held["hashes"] for place, held in self.works.items() if place not in new}
        for hashes in new.values():
            for step, made in hashes.items():
                for place, held in staying.items():
                    if step.endswith("/model") and held.get(step, made) != made:
                        raise InputError(
                            f"{step.removesuffix('/model')} was published with another network, on which {place} "
                            "stands: finish that row here too, or publish into another folder"
                        )


def data_set_of(place: str) -> str:
    """The data set of a place."""
    return place.partition("/")[0]


def data_of(settings: dict[str, Any]) -> dict[str, Any]:
    """What a ledger's settings say of its data."""
    return {name: settings[field] for name, field in DATA.items()}


def made_on(device: torch.device) -> dict[str, Any]:
    """Date, versions and machine."""
    return {
        "date": headers.now(),
        "linocut": linocut.__version__,
        "source": headers.source(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": name_of(device),
    }
