"""From the folder of a reproduction to a folder of results."""

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.recipes.publish.catalogue import Catalogue, data_of, made_on
from linocut.recipes.publish.finished import Finished, Stock
from linocut.recipes.publish.pages import lines_of, write_pages
from linocut.recipes.publish.parcels import Packer, Verified
from linocut.recipes.publish.wording import Wording, roots_of, sources_of
from linocut.recipes.reproduce import stamps
from linocut.recipes.reproduce.reporting import CHART, OVERVIEW, REPORT, TABLE
from linocut.report import require_jinja


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What one call did: the ledgers it packed and their verification, the works it took from other results or left as
    they were, what is open.

    bytes: the size of all that lies in the folder now.
    """

    verified: dict[str, Verified]
    joined: list[str] = field(default_factory=list)
    unchanged: list[str]
    open: dict[str, dict[str, Any]]
    bytes: int

    @property
    def failures(self) -> int:
        """How many claims were not confirmed, before packing or after."""
        return sum(len(each.whole.failures) + len(each.packed.failures) for each in self.verified.values())

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"failures": self.failures}


def publish(
    out: Path, results: Path, *, images: int, device: torch.device, tell: Callable[[str], None] = lambda text: None
) -> Publication:
    """Publish the finished works of a reproduction; those that were published before and are unchanged stay."""
    out, results = out.absolute(), results.absolute()
    if images < 1:
        raise InputError(f"images must be at least 1, got {images}")
    if results.resolve().is_relative_to(out.resolve()):
        raise InputError(f"{results} lies in the reproduction's own folder: choose one beside it")
    require_jinja()  # before anything is written
    stock, catalogue = Stock(out), Catalogue.at(results, images, device)
    finished = stock.finished()
    before = dict(catalogue.works)
    new = [found for found in finished if not _is_there(found, catalogue, results)]
    if not before and not new:
        raise InputError(f"no row of {out} is finished yet: go on with `linocut reproduce`")
    catalogue.check_networks({found.work.place: found.hashes for found in new})
    for found in new:
        settings = headers.read(out / found.work.place / found.ledgers[0])["settings"]
        catalogue.settle_data(found.work.data_set, data_of(settings))
    catalogue.open = {place: told for place, told in catalogue.open.items() if place not in stock.works}
    catalogue.open |= stock.open()
    if new:
        catalogue.made = made_on(device)
    catalogue.write(results)  # first, so that a publication that was stopped can be gone on with
    packer = Packer(out, results, catalogue, device, tell)
    records = {found.work.place: packer.put(found) for found in new}
    tell("overview and report")
    write_pages(
        catalogue,
        results,
        due=dict.fromkeys(found.work.data_set for found in finished),
        written=partial(_written, out),
        at_hand={found.work.place: out for found in finished},
        known=records,
        wording=_wording(out, results, finished),
    )
    catalogue.write(results)
    return Publication(
        verified=packer.verified,
        unchanged=[found.work.place for found in finished if found.work.place not in records],
        open=catalogue.open,
        bytes=size_of(results),
    )


def size_of(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _is_there(found: Finished, catalogue: Catalogue, results: Path) -> bool:
    place = found.work.place
    held = catalogue.works.get(place, {})
    return held.get("hashes") == found.hashes and all(
        (results / place / name / headers.NAME).exists() for name in found.ledgers
    )


def _written(out: Path, data_set: str, lines: Collection[str]) -> Path | None:
    """The reproduction's own report, if it is whole and speaks of nothing but what these lines say."""
    made = stamps.read_at(out / f"{REPORT}.stamp.json").get("outputs")
    pieces = [out / name for name in (REPORT, OVERVIEW, TABLE, CHART)]
    if made is None or made != stamps.hashes(pieces, out):
        return None
    table = (out / TABLE).read_text()
    whole = len(table.splitlines()) == len(lines) + 1
    return out / REPORT if whole and lines_of(table, data_set) == lines else None


def _wording(out: Path, results: Path, finished: list[Finished]) -> Wording:
    """The words for texts that speak of any of these ledgers."""
    made = [
        (found.work.place, headers.read(out / found.work.place / name)) for found in finished for name in found.ledgers
    ]
    origins = {str(held["settings"]["model"]).removesuffix(f"/{place}/model") for place, held in made}
    repeats, typed = ([held["made_with"].get(name) for _, held in made] for name in ("repeat", "command"))
    return Wording([out, results, *origins], roots_of(repeats), sources_of(typed))
