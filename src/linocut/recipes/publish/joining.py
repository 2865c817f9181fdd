"""Results that were published elsewhere put among these: copied as they are, nothing is run."""

import shutil
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

import torch

from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.evaluation import shards
from linocut.recipes.publish.catalogue import Catalogue
from linocut.recipes.publish.pages import TABLE, lines_of, write_pages
from linocut.recipes.publish.parcels import NATURAL, put_natural, put_network
from linocut.recipes.publish.publication import Publication, size_of
from linocut.recipes.publish.wording import Wording
from linocut.recipes.reproduce.reporting import REPORT, check_can_report
from linocut.recipes.reproduce.step import remove


def join(other: Path, results: Path, *, tell: Callable[[str], None] = lambda text: None) -> Publication:
    """Put the works of another folder of results among these; a work that lies here too is replaced by the other's."""
    other, results = other.absolute(), results.absolute()
    if other.resolve() == results.resolve():
        raise InputError(f"{results} cannot be joined with itself: name another folder of results")
    check_can_report()
    theirs = Catalogue.read(other)
    mine = Catalogue.at(results, theirs.images, torch.device("cpu"))
    new = {place: held for place, held in theirs.works.items() if not _is_there(place, held, mine, results)}
    mine.check_networks({place: held["hashes"] for place, held in new.items()})
    for data_set, told in theirs.data.items():
        mine.settle_data(data_set, told)
    for data_set in theirs.data:
        put_natural(shards.read(other / data_set / NATURAL), results / data_set / NATURAL, other)
    if new:
        mine.made = theirs.made
    mine.open |= theirs.open
    for place, held in new.items():
        tell(place)
        _put(place, held, other, results, mine)
    mine.open = {place: told for place, told in mine.open.items() if place not in mine.works}
    tell("overview and report")
    write_pages(
        mine,
        results,
        due=list(theirs.data),
        written=partial(_written, other),
        at_hand={},
        known={},
        wording=Wording([results, other], []),
    )
    mine.write(results)
    unchanged = [place for place in theirs.works if place not in new]
    return Publication(verified={}, joined=list(new), unchanged=unchanged, open=mine.open, bytes=size_of(results))


def _put(place: str, held: dict, other: Path, results: Path, mine: Catalogue) -> None:
    """Copy a work's ledgers and the networks it stands on; only then it is in the catalogue."""
    mine.works.pop(place, None)
    remove((results / place).glob("ledger-*"))
    for name in held["ledgers"]:
        shutil.copytree(other / place / name, results / place / name)
    for step, made in held["hashes"].items():
        if step.endswith("/model"):
            put_network(other, results, mine, step.removesuffix("/model"), made)
    mine.works[place] = held
    mine.write(results)


def _is_there(place: str, held: dict, mine: Catalogue, results: Path) -> bool:
    return mine.works.get(place, {}).get("hashes") == held["hashes"] and all(
        (results / place / name / headers.NAME).exists() for name in held["ledgers"]
    )


def _written(other: Path, data_set: str, lines: Collection[str]) -> Path | None:
    """The other's report of a data set, if it says what these lines do."""
    report = other / data_set / REPORT
    return report if report.is_dir() and lines_of((other / TABLE).read_text(), data_set) == lines else None
