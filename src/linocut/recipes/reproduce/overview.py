"""The rows of a reproduction side by side: mean and spread over seeds, with the paper's figures beside them."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linocut.evaluation.record import Record, Share
from linocut.recipes.reproduce.work import Work
from linocut.recipes.training.rows import ROWS
from linocut.report.paper import PaperRow, find

Records = Mapping[str, Sequence[Record]]  # by the place of a work, in the order of its judgements
COLUMNS = {
    "clean": "clean",
    "linf_pgd": "L∞ PGD",
    "linf_square": "L∞ Square",
    "linf_worst": "L∞ worst",
    "l2_pgd": "L2 PGD",
    "l2_square": "L2 Square",
    "l2_worst": "L2 worst",
}
_IN_PAPER = {"clean": "accuracy", "linf_square": "linf_square_500", "l2_square": "l2_square_500"}
_TRANSFORMS = {None: "none", "acab": "ac+ab"}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One accuracy in per cent over the seeds: mean, lowest, highest, the n of each, and the paper's figure."""

    mean: float
    low: float
    high: float
    n: int
    paper: float | None

    @property
    def words(self) -> str:
        """The mean, with the range where there is one, and the paper's figure."""
        spread = f" ({self.low:.1f} to {self.high:.1f})" if self.low < self.high else ""
        return f"{self.mean:.1f}{spread}" + ("" if self.paper is None else f" [{self.paper:.1f}]")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row of one data set over its seeds."""

    data_set: str
    row: str
    judged_on: str  # the set whose images were judged: digits may stand in
    seeds: tuple[int, ...]
    cells: Mapping[str, Cell]


def lines(works: Sequence[Work], records: Records) -> list[Line]:
    """A line a row, in the order of the works; rows of several seeds are one."""
    grouped: dict[tuple[str, str], list[Work]] = {}
    for work in works:
        grouped.setdefault((work.data_set, work.row), []).append(work)
    return [_line(group, records) for group in grouped.values()]


def worst(judged: Sequence[Record], norm: str) -> tuple[set[int], set[int]]:
    """The examples that the last suite judged, and those of them that no suite broke."""
    examples = set(judged[-1].of["clean"])
    lost = set[int]().union(*(record.wrong() | record.broken_by(record.counting(norm)) for record in judged))
    return examples, examples - lost


def _line(group: Sequence[Work], records: Records) -> Line:
    first = group[0]
    shares = [_shares(records[work.place]) for work in group]
    paper = _paper(first)
    cells = {}
    for column in COLUMNS:
        found = [each[column] for each in shares if column in each]
        if found:
            percents = [share.percent for share in found]
            cells[column] = Cell(
                mean=sum(percents) / len(percents),
                low=min(percents),
                high=max(percents),
                n=found[0].n,
                paper=getattr(paper, _IN_PAPER.get(column, column), None),
            )
    return Line(
        data_set=first.data_set,
        row=first.row,
        judged_on=first.config.data_set,
        seeds=tuple(work.config.seed for work in group),
        cells=cells,
    )


def _shares(judged: Sequence[Record]) -> dict[str, Share]:
    """The accuracies of one network. A fixed codebook's published attack is the loop of Chen et al."""
    first = judged[0]
    found = {"clean": first.clean}
    for norm in first.norms:
        published = {name.split("/")[1]: share for name, share in first.published(norm).items()}
        pgd = published.get("chen-published") or published.get("pgd-published")
        for column, share in (("pgd", pgd), ("square", published.get("square-published"))):
            if share is not None:
                found[f"{norm}_{column}"] = share
        examples, standing = worst(judged, norm)
        found[f"{norm}_worst"] = Share(len(standing), len(examples))
    return found


def _paper(work: Work) -> PaperRow | None:
    """The paper's row, where the work is judged on its data."""
    row = ROWS[work.row]
    transform = _TRANSFORMS.get(row.transform, row.transform)
    at = "none" if row.transform is None else row.transform_at
    return find(work.config.data_set, row.method, str(transform), at)


LEGEND = (
    "Accuracy in per cent: the mean over seeds (lowest to highest) [the paper's figure].",
    "PGD and Square: as published (a fixed codebook's PGD is the loop of Chen et al.). "
    "Worst: for each image the minimum over every attack of every suite that it met.",
)


def headings(found: Sequence[Line]) -> dict[str, str]:
    """The columns that have figures, with the number of images where all rows share it."""
    named = {}
    for column, name in COLUMNS.items():
        counts = {line.cells[column].n for line in found if column in line.cells}
        if counts:
            named[column] = f"{name}, n={counts.pop()}" if len(counts) == 1 else name
    return named


def as_markdown(found: Sequence[Line], notes: Sequence[str] = ()) -> str:
    """The table as GitHub shows it, with a legend."""
    named = headings(found)
    head = ["data set", "row", "seeds", *named.values()]
    body = [
        [line.data_set, line.row, str(len(line.seeds)), *(_words(line.cells.get(column)) for column in named)]
        for line in found
    ]
    rows = [head, ["---"] * len(head), *body]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{table}\n\n" + "".join(f"- {sentence}\n" for sentence in (*LEGEND, *notes))


def as_csv(found: Sequence[Line]) -> str:
    """One line for each accuracy, for programs."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["data_set", "row", "judged_on", "seeds", "column", "mean", "low", "high", "n", "paper"])
    for line in found:
        seeds = " ".join(map(str, line.seeds))
        for column, cell in line.cells.items():
            values = [f"{value:.4f}" for value in (cell.mean, cell.low, cell.high)]
            paper = "" if cell.paper is None else cell.paper
            writer.writerow([line.data_set, line.row, line.judged_on, seeds, column, *values, cell.n, paper])
    return out.getvalue()


def _words(cell: Cell | None) -> str:
    return "" if cell is None else cell.words
