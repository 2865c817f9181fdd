"""The overview as a picture: every row's fall from the published accuracy to the worst case."""

from collections.abc import Sequence

from linocut.recipes.reproduce.overview import Line
from linocut.recipes.reproduce.tables import words
from linocut.recipes.training.rows import training_changes
from linocut.report.charts.pairs import Fall, falls_chart
from linocut.report.words import NORMS


def falls(line: Line) -> dict[str, Fall]:
    """By norm, for each norm in which the row has both accuracies."""
    found = {}
    for norm in NORMS:
        published, worst = (line.cells.get(f"{norm}_{column}") for column in ("pgd", "worst"))
        if published is not None and worst is not None:
            found[norm] = Fall(published=published.mean, worst=worst.mean, n=worst.n)
    return found


def as_svg(found: Sequence[Line]) -> str:
    """A heading for each data set and way of training, a line a row; rows that lack one of the two are left out."""
    groups: dict[str, list[tuple[str, dict[str, Fall]]]] = {}
    for line in found:
        if fallen := falls(line):
            heading = ", ".join([line.data_set, *training_changes(line.row)])
            groups.setdefault(heading, []).append((words(line.row.partition("+")[0]), fallen))
    return falls_chart(list(groups.items()), title="As published and in the worst case")
