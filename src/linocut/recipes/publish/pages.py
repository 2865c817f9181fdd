"""The overview of all works among the results, and a report for each data set."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from linocut.evaluation.record import Record
from linocut.files import write_whole
from linocut.recipes.publish import provenance
from linocut.recipes.publish.catalogue import Catalogue
from linocut.recipes.publish.finished import work_at
from linocut.recipes.publish.wording import Wording
from linocut.recipes.reproduce.reporting import PAGES, REPORT, TABLE, overview_texts
from linocut.recipes.reproduce.tables import DATA_SETS
from linocut.recipes.reproduce.work import Work
from linocut.recipes.training import ROWS
from linocut.recipes.training.rows import plain_row
from linocut.report import write as write_report

PREFACE = f"[Where each number comes from]({provenance.NAME}): its ledger, how to check it, how to repeat it.\n\n"
Written = Callable[[str, Collection[str]], Path | None]


def works_of(catalogue: Catalogue, results: Path) -> list[Work]:
    """The works in the order of data sets and rows, whenever they were published."""

    def work(place: str) -> Work:
        return work_at(results, place, catalogue.works[place]["note"])

    rows = list(ROWS)
    found = [work(place) for place in catalogue.works]
    return sorted(
        found, key=lambda w: (DATA_SETS.index(w.data_set), rows.index(plain_row(w.row)), w.row, w.config.seed)
    )


def write_pages(
    catalogue: Catalogue,
    results: Path,
    *,
    due: Collection[str],
    written: Written,
    at_hand: Mapping[str, Path],
    known: Mapping[str, Sequence[Record]],
    wording: Wording,
) -> None:
    """Writes overview.md, .csv and .svg and provenance.md, and DATA/report/ of the data sets that are due.

    written: for a data set and its lines of the table, a report that says just that, if there is one. at_hand: folders
    whose ledgers have pictures and losses to show, which the packed ones have not, by place; known: records that need
    not be read again, by place.
    """
    works = works_of(catalogue, results)
    records = {
        work.place: known.get(work.place)
        or [Record.read(results / work.place / name) for name in catalogue.works[work.place]["ledgers"]]
        for work in works
    }
    title = _title([work.data_set for work in works])
    texts = overview_texts(title, works, records, preface=PREFACE)
    for name, text in texts.items():
        write_whole(results / name, text.encode())
    named = {place: dict(zip(catalogue.works[place]["ledgers"], held, strict=True)) for place, held in records.items()}
    write_whole(results / provenance.NAME, provenance.provenance(results, works, named).encode())
    for data_set in due:
        target = results / data_set / REPORT
        source = written(data_set, lines_of(texts[TABLE], data_set))
        if source is None:
            ledgers = [
                at_hand.get(work.place, results) / work.place / name
                for work in works
                if work.data_set == data_set
                for name in catalogue.works[work.place]["ledgers"]
            ]
            source = write_report(ledgers, target, title=_title([data_set])).parent
        for name in PAGES:
            write_whole(target / name, wording.text((source / name).read_text(encoding="utf-8")).encode())


def lines_of(table: str, data_set: str) -> list[str]:
    """The lines of a table that speak of a data set, sorted."""
    return sorted(line for line in table.splitlines() if line.startswith(f"{data_set},"))


def _title(data_sets: Sequence[str]) -> str:
    return f"Results on {', '.join(dict.fromkeys(data_sets))}"
