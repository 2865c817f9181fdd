"""The last step: the report of all ledgers, and the overview over rows and seeds."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import linocut
from linocut.errors import InputError
from linocut.evaluation.record import Record
from linocut.models.files import write_whole
from linocut.recipes.reproduce import overview, verdict
from linocut.recipes.reproduce.judging import Evaluate
from linocut.recipes.reproduce.step import Step, Watch, Workshop
from linocut.recipes.reproduce.work import Work


class WriteReport(Step):
    """DIR/report/report.html, DIR/overview.md and DIR/overview.csv of every ledger of the plan."""

    def __init__(self, title: str, works: Sequence[Work], ledgers: Sequence[Evaluate]):
        super().__init__("report", "write the report", ledgers)
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
        return sorted({f"{work.data_set}: {work.note}." for work in self.works if work.note})

    def pieces(self, shop: Workshop) -> list[Path]:
        return [shop.out / "report", shop.out / "overview.md", shop.out / "overview.csv"]

    def run(self, shop: Workshop, watch: Watch) -> None:
        from linocut.report import write

        page = write([step.ledger(shop) for step in self.ledgers], shop.out / "report", title=self.page_title)
        assert page == shop.out / "report" / "report.html"
        records = self.records(shop)
        found = overview.lines(self.works, records)
        told = "\n".join(f"- {sentence}" for sentence in verdict.sentences(self.works, records))
        text = f"# {self.page_title}\n\n{overview.as_markdown(found, self.notes)}\n"
        write_whole(shop.out / "overview.md", (text + (f"## Verdict\n\n{told}\n" if told else "")).encode())
        write_whole(shop.out / "overview.csv", overview.as_csv(found).encode())

    def records(self, shop: Workshop) -> dict[str, list[Record]]:
        """The ledgers, by the place of their work, in the order of its judgements."""
        found: dict[str, list[Record]] = {}
        for step in self.ledgers:
            found.setdefault(step.work.place, []).append(Record.read(step.ledger(shop)))
        return found


def check_can_report() -> None:
    """InputError where the last step would fail for want of a package: that should not be found out hours later."""
    if importlib.util.find_spec("jinja2") is None:
        raise InputError("the report at the end needs Jinja: pip install 'linocut[report]'")
