"""The rows of a reproduction side by side: mean and spread over seeds, with the paper's figures beside them."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linocut.evaluation.findings import find as find_all
from linocut.evaluation.record import Record, Share, lost
from linocut.evaluation.summary import failed
from linocut.recipes.reproduce.work import Work
from linocut.recipes.training.rows import row_named
from linocut.report.paper import PaperRow, find, is_another
from linocut.report.words import rounded

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
CLOSE = 5.0  # points
_IN_PAPER = {"clean": "accuracy", "linf_square": "linf_square_500", "l2_square": "l2_square_500"}
_TRANSFORMS = {None: "none", "acab": "ac+ab"}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One accuracy in per cent, on n images: the mean over seeds, and from where to where.

    With one seed low and high are the 95 % interval of its images; with several, the lowest and highest seed.
    """

    mean: float
    low: float
    high: float
    n: int
    paper: float | None

    @property
    def words(self) -> str:
        """The mean, its bounds, and the paper's figure where there is one."""
        decimals = Share(0, self.n).decimals
        paper = "" if self.paper is None else f" [{rounded(self.paper, 1)}]"
        return f"{rounded(self.mean, decimals)} ({self.bounds}){paper}"

    @property
    def bounds(self) -> str:
        """With a decimal where they lie close together."""
        decimals = 1 if self.high - self.low < CLOSE else 0
        return f"{rounded(self.low, decimals)}–{rounded(self.high, decimals)}"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row of one data set over its seeds."""

    data_set: str
    row: str
    judged_on: str  # the set whose images were judged: digits may stand in
    seeds: tuple[int, ...]
    cells: Mapping[str, Cell]
    failed: tuple[str, ...]  # the checks of any ledger that fail

    @property
    def checks(self) -> str:
        """The failing checks in a word."""
        return ", ".join(self.failed) or "none fails"


def lines(works: Sequence[Work], records: Records) -> list[Line]:
    """A line a row, in the order of the works; rows of several seeds are one."""
    grouped: dict[tuple[str, str], list[Work]] = {}
    for work in works:
        grouped.setdefault((work.data_set, work.row), []).append(work)
    return [_line(group, records) for group in grouped.values()]


def worst(judged: Sequence[Record], norm: str) -> tuple[set[int], set[int]]:
    """The examples that the last suite judged, and those of them that no suite broke."""
    examples = set(judged[-1].of["clean"])
    return examples, examples - lost(judged, norm)


def _line(group: Sequence[Work], records: Records) -> Line:
    first = group[0]
    each_seed = [shares(records[work.place]) for work in group]
    paper = _paper(first)
    cells = {}
    for column in COLUMNS:
        found = [each[column] for each in each_seed if column in each]
        if found:
            percents = [share.percent for share in found]
            bounds = percents if len(found) > 1 else found[0].interval
            cells[column] = Cell(
                mean=sum(percents) / len(percents),
                low=min(bounds),
                high=max(bounds),
                n=found[0].n,
                paper=getattr(paper, _IN_PAPER.get(column, column), None),
            )
    codes = {code for work in group for record in records[work.place] for code in failed(find_all(record))}
    return Line(
        data_set=first.data_set,
        row=first.row,
        judged_on=first.config.data_set,
        seeds=tuple(work.config.seed for work in group),
        cells=cells,
        failed=tuple(sorted(codes)),
    )


def shares(judged: Sequence[Record]) -> dict[str, Share]:
    """The accuracies of one network."""
    first = judged[0]
    found = {"clean": first.clean}
    for norm in first.norms:
        for column, name in (("pgd", first.white_box(norm)), ("square", f"{norm}/square-published")):
            if name in first.published(norm):
                found[f"{norm}_{column}"] = first.after(name)
        examples, standing = worst(judged, norm)
        found[f"{norm}_worst"] = Share(len(standing), len(examples))
    return found


def _paper(work: Work) -> PaperRow | None:
    """The paper's row, where the work is judged on its data and transform and training are the paper's."""
    if is_another(work.row):
        return None
    row = row_named(work.row)
    transform = _TRANSFORMS.get(row.transform, row.transform)
    at = "none" if row.transform is None else row.transform_at
    return find(work.config.data_set, row.method, str(transform), at)


def legend(found: Sequence[Line]) -> list[str]:
    """What the figures and the columns mean."""
    numbers = {min(len(line.seeds), 2) for line in found}
    bounds = {1: "the share (95 % interval)", 2: "the mean over seeds (lowest–highest)"}
    told = bounds[numbers.pop()] if len(numbers) == 1 else f"{bounds[1]}; of several seeds {bounds[2]}"
    paper = any(cell.paper is not None for line in found for cell in line.cells.values())
    count = shared_count(found)
    of = "" if count is None else f" of {count} images"
    return [
        f"Accuracy in per cent{of}: {told}" + (" [the paper's figure]." if paper else "."),
        "PGD and Square: as published (a fixed codebook's PGD is the loop of Chen et al.). "
        "Worst: an image counts only if every attack of every suite that it met failed.",
        "Checks: where one fails, take the worst case as an upper bound; the report says why.",
    ]


def headings(found: Sequence[Line]) -> dict[str, str]:
    """The columns that have figures, each with its number of images, unless all columns share one."""
    named = {}
    for column, name in COLUMNS.items():
        counts = {line.cells[column].n for line in found if column in line.cells}
        if counts:
            told = len(counts) == 1 and shared_count(found) is None
            named[column] = f"{name}, n={counts.pop()}" if told else name
    return named


def shared_count(found: Sequence[Line]) -> int | None:
    """The number of images of all figures, if it is the same for all."""
    counts = {cell.n for line in found for cell in line.cells.values()}
    return counts.pop() if len(counts) == 1 else None


def as_markdown(found: Sequence[Line], notes: Sequence[str] = ()) -> str:
    """The table as GitHub shows it, with a legend."""
    named = headings(found)
    head = ["data set", "row", "seeds", *named.values(), "checks that fail"]
    body = [
        [line.data_set, line.row, str(len(line.seeds))]
        + [line.cells[column].words if column in line.cells else "" for column in named]
        + [line.checks]
        for line in found
    ]
    rows = [head, ["---"] * len(head), *body]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{table}\n\n" + "".join(f"- {sentence}\n" for sentence in (*legend(found), *notes))


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
