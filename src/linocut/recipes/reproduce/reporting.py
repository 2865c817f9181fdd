"""The last step: the report of all ledgers, and the overview over rows and seeds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import linocut
from linocut.data.catalogue import ENTRIES
from linocut.evaluation.record import Record
from linocut.files import write_whole
from linocut.recipes.reproduce import overview, verdict
from linocut.recipes.reproduce.departures import departures
from linocut.recipes.reproduce.judging import Evaluate
from linocut.recipes.reproduce.step import Step, Watch, Workshop
from linocut.recipes.reproduce.work import Work
from linocut.recipes.training.rows import training_changes

REPORT = "report"
PAGES = ("report.html", "tables.csv", "tables.md", "tables.tex")  # what lies in it
OVERVIEW, TABLE, CHART = "overview.md", "overview.csv", "overview.svg"


class WriteReport(Step):
    """DIR/report/report.html and DIR/overview.md, .csv and .svg of every ledger of the plan."""

    def __init__(self, title: str, works: Sequence[Work], ledgers: Sequence[Evaluate]):
        super().__init__(REPORT, "write the report", ledgers)
        self.page_title, self.works, self.ledgers = title, works, ledgers

    def inputs(self, shop: Workshop) -> dict[str, Any]:
        return {
            "linocut": linocut.__version__,
            "title": self.page_title,
            "works": [work.place for work in self.works],
            "notes": self.notes,
        }

    @property
    def notes(self) -> list[str]:
        """What a reader must be told of the works."""
        return notes_of(self.works)

    def pieces(self, shop: Workshop) -> list[Path]:
        return [shop.out / name for name in (REPORT, OVERVIEW, TABLE, CHART)]

    def run(self, shop: Workshop, watch: Watch) -> None:
        from linocut.report import write

        page = write([step.ledger(shop) for step in self.ledgers], shop.out / REPORT, title=self.page_title)
        assert page == shop.out / REPORT / "report.html"
        records = self.records(shop)
        for name, text in overview_texts(self.page_title, self.works, records).items():
            write_whole(shop.out / name, text.encode())

    def records(self, shop: Workshop) -> dict[str, list[Record]]:
        """The ledgers, by the place of their work, in the order of its judgements."""
        found: dict[str, list[Record]] = {}
        for step in self.ledgers:
            found.setdefault(step.work.place, []).append(Record.read(step.ledger(shop)))
        return found


def overview_texts(
    title: str, works: Sequence[Work], records: overview.Records, *, preface: str = ""
) -> dict[str, str]:
    """By file name: the overview with its verdict, its figures for programs, and its picture.

    The preface stands before the table.
    """
    from linocut.recipes.reproduce.overview_chart import as_svg

    found = overview.lines(works, records)
    told = "\n".join(f"- {sentence}" for sentence in verdict.sentences(works, records))
    notes = notes_of(works) + part_notes(works, records) + search_notes(works, records)
    picture = f"![From the published accuracy to the worst case, row by row]({CHART})\n\n"
    text = f"# {title}\n\n{preface}{picture}{overview.as_markdown(found, notes)}\n"
    text += f"## Verdict\n\n{told}\n" if told else ""
    return {OVERVIEW: text, TABLE: overview.as_csv(found), CHART: as_svg(found)}


def notes_of(works: Sequence[Work]) -> list[str]:
    """What a reader must be told of the works: in what their training departs from the paper's, and their own notes."""
    told = []
    for work in works:
        training = "natural training" if work.config.method == "natural" else "ATTA"
        name = ", ".join([work.data_set, training, *training_changes(work.row)])
        note = "; ".join(filter(None, [work.note, departures(work.config)]))
        told += [f"{name}: {note}."] if note else []
    return list(dict.fromkeys(told))  # rows trained in several ways, as joined results may have them, each say theirs


def part_notes(works: Sequence[Work], records: overview.Records) -> list[str]:
    """Data sets of which only a part was at hand, told by the number of test images: the paper's were others."""
    judged = {work.data_set: records[work.place][0].settings for work in works}
    official = {name: ENTRIES[name].images[1] for name in judged if name in ENTRIES}
    return [
        f"{name}: a part of the set, {judged[name]['size']} test images of {many}: the paper's figures are of others."
        for name, many in official.items()
        if judged[name]["data"] == name and int(judged[name]["size"]) < many / 2  # GTSRB drops a fourth, being dark
    ]


def search_notes(works: Sequence[Work], records: overview.Records) -> list[str]:
    """Data sets whose networks were not all searched in the same format: a rougher search may find less."""
    told = []
    for data_set in dict.fromkeys(work.data_set for work in works):
        rows: dict[str, list[str]] = {}
        for work in works:
            if work.data_set == data_set:
                used = {record.settings.get("precision", "float32") for record in records[work.place]}
                rows.setdefault(" and ".join(sorted(used)), []).append(work.row)
        if len(rows) > 1:
            formats = "; ".join(f"{', '.join(dict.fromkeys(names))} in {used}" for used, names in rows.items())
            told.append(f"{data_set}: not all searched in the same format ({formats}): compare with care.")
    return told
