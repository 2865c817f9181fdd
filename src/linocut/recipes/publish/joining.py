"""Results that were published elsewhere put among these: copied as they are, nothing is run."""

import shutil
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import torch

from linocut.errors import InputError
from linocut.evaluation import shards
from linocut.evaluation.record import Record
from linocut.files import UNFINISHED
from linocut.recipes.publish.catalogue import Catalogue, data_set_of
from linocut.recipes.publish.finished import work_at
from linocut.recipes.publish.pages import lines_of, write_pages
from linocut.recipes.publish.parcels import NATURAL, put_natural, put_network
from linocut.recipes.publish.publication import Publication, size_of
from linocut.recipes.publish.wording import Wording
from linocut.recipes.reproduce.making import HOW_NOT_WHAT
from linocut.recipes.reproduce.reporting import PAGES, REPORT, TABLE
from linocut.recipes.reproduce.step import remove
from linocut.report import require_jinja


def join(other: Path, results: Path, *, tell: Callable[[str], None] = lambda text: None) -> Publication:
    """Put the works of another folder of results among these; what does not fit is refused before anything changes."""
    other, results = other.absolute(), results.absolute()
    if other.resolve() == results.resolve():
        raise InputError(f"{results} cannot be joined with itself: name another folder of results")
    require_jinja()  # before anything is written
    theirs = Catalogue.read(other)
    mine = Catalogue.at(results, theirs.images, torch.device("cpu"))
    changed = mine.forget_removed(results)
    new = _new(theirs, mine, results)
    mine.check_networks({place: held["hashes"] for place, held in new.items()})
    for place in new:
        _check_recipe(place, other, results, mine)
    records = {place: _records(other, place, held["ledgers"]) for place, held in new.items()}
    natural = {data_set: shards.read(other / data_set / NATURAL) for data_set in theirs.data}
    for data_set, told in theirs.data.items():
        mine.settle_data(data_set, told)
    if not mine.works:
        mine.made = theirs.made
    mine.open = {place: told for place, told in (mine.open | theirs.open).items() if place not in mine.works}
    mine.write(results)  # first, so that a join that was stopped can be gone on with
    remove(results / name / REPORT for name in {*changed, *map(data_set_of, new)})  # it says nothing of what comes now
    for data_set, images in natural.items():
        put_natural(images, results / data_set / NATURAL, other)
    for place, held in new.items():
        tell(place)
        _put(place, held, other, results, mine)
    tell("overview and report")
    unreported = [name for name in theirs.data if not _is_reported(results, name)]
    there = set(map(data_set_of, mine.works))
    write_pages(
        mine,
        results,
        due=[name for name in mine.data if name in there and name in (*changed, *unreported)],
        written=partial(_written, other),
        at_hand={},
        known=records,
        wording=Wording([results, other], []),
    )
    unchanged = [place for place in theirs.works if place not in new]
    return Publication(verified={}, joined=list(new), unchanged=unchanged, open=mine.open, bytes=size_of(results))


def _new(theirs: Catalogue, mine: Catalogue, results: Path) -> dict[str, dict[str, Any]]:
    """The works that do not lie here; InputError where another lies in the place of one."""
    for place, held in theirs.works.items():
        if mine.works.get(place, held)["hashes"] != held["hashes"]:
            raise InputError(
                f"{place} lies in {results} too, and is another one: remove it there to replace it, or join into "
                "a folder of its own"
            )
    return {place: held for place, held in theirs.works.items() if place not in mine.works}


def _records(other: Path, place: str, ledgers: Collection[str]) -> list[Record]:
    """The ledgers of a work, read whole: what is damaged is found before it is copied."""
    for name in ledgers:
        if not (other / place / name).is_dir():
            raise InputError(f"{other / place / name} is missing: copy the whole folder of results")
    return [Record.read(other / place / name) for name in ledgers]


def _check_recipe(place: str, other: Path, results: Path, mine: Catalogue) -> None:
    """InputError where the same row lies here with another seed and another training: they would be averaged."""
    row, config = place.rpartition("/")[0], work_at(other, place, "").config
    for there in mine.works:
        if there.rpartition("/")[0] == row:
            changes = work_at(results, there, "").config.changes(config.to_json())
            differs = [name for name, *_ in changes if name not in ("seed", *HOW_NOT_WHAT)]
            if differs:
                raise InputError(
                    f"{place} was trained otherwise than {there} ({', '.join(differs)}): join into a folder of its own"
                )


def _put(place: str, held: dict, other: Path, results: Path, mine: Catalogue) -> None:
    """Copy a work's ledgers and the networks it stands on; only then it is in the catalogue."""
    remove((results / place).glob("ledger-*"))  # of a join that was stopped
    for name in held["ledgers"]:
        shutil.copytree(other / place / name, results / place / name, ignore=UNFINISHED)
    for step, made in held["hashes"].items():
        if step.endswith("/model"):
            put_network(other, results, mine, step.removesuffix("/model"), made)
    mine.works[place] = held
    mine.open.pop(place, None)
    mine.write(results)


def _is_reported(results: Path, data_set: str) -> bool:
    return all((results / data_set / REPORT / name).is_file() for name in PAGES)


def _written(other: Path, data_set: str, lines: Collection[str]) -> Path | None:
    """The other's report of a data set, if it says what these lines do."""
    table = other / TABLE
    if not (_is_reported(other, data_set) and table.is_file()):
        return None
    return other / data_set / REPORT if lines_of(table.read_text(), data_set) == lines else None
