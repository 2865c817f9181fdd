"""Overview and report over all works among the results."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from linocut.evaluation.record import Record
from linocut.models.files import write_whole
from linocut.recipes.publish.catalogue import Catalogue
from linocut.recipes.publish.finished import work_at
from linocut.recipes.publish.wording import Wording
from linocut.recipes.reproduce import stamps
from linocut.recipes.reproduce.reporting import REPORT, overview_texts
from linocut.recipes.reproduce.tables import DATA_SETS
from linocut.recipes.reproduce.work import Work
from linocut.recipes.training import ROWS
from linocut.recipes.training.rows import plain_row
from linocut.report import write as write_report


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
    out: Path,
    results: Path,
    *,
    at_hand: Collection[str],
    known: Mapping[str, Sequence[Record]],
    wording: Wording,
) -> None:
    """Writes overview.md, overview.csv and report/.

    at_hand: the places of works that are finished in the reproduction's folder; known: records that need not be
    read again, by place.
    """
    works = works_of(catalogue, results)
    records = {
        work.place: known.get(work.place)
        or [Record.read(results / work.place / name) for name in catalogue.works[work.place]["ledgers"]]
        for work in works
    }
    title = f"Results on {', '.join(dict.fromkeys(work.data_set for work in works))}"
    markdown, table = overview_texts(title, works, records)
    write_whole(results / "overview.md", markdown.encode())
    write_whole(results / "overview.csv", table.encode())
    source = out / REPORT
    if not _is_reported(out, table):
        # The ledgers of the reproduction have pictures and losses to show that the packed ones have not.
        ledgers = [
            (out if work.place in at_hand else results) / work.place / name
            for work in works
            for name in catalogue.works[work.place]["ledgers"]
        ]
        source = write_report(ledgers, results / REPORT, title=title).parent
    for path in sorted(source.glob("*.*")):
        write_whole(results / REPORT / path.name, wording.text(path.read_text(encoding="utf-8")).encode())


def _is_reported(out: Path, table: str) -> bool:
    """Whether the reproduction's own report is whole and says what the ledgers say now, in whatever order."""
    made = stamps.read_at(out / f"{REPORT}.stamp.json").get("outputs")
    pieces = [out / REPORT, out / "overview.md", out / "overview.csv"]
    if made is None or made != stamps.hashes(pieces, out):
        return False
    return sorted((out / "overview.csv").read_text().splitlines()) == sorted(table.splitlines())
