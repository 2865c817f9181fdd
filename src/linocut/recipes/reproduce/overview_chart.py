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
            found[norm] = Fall(published=published.mean, worst=worst.mean)
    return found


def as_svg(found: Sequence[Line]) -> str:
    """One heading a data set, one line a row; rows that lack one of the two accuracies are left out."""
    groups: dict[str, list[tuple[str, dict[str, Fall]]]] = {}
    for line in found:
        if fallen := falls(line):
            groups.setdefault(line.data_set, []).append((line.row, fallen))
    return falls_chart([_group(*group) for group in groups.items()], title="As published and in the worst case")


def _group(data_set: str, rows: list[tuple[str, dict[str, Fall]]]) -> tuple[str, list[tuple[str, dict[str, Fall]]]]:
    """Heading and names of one data set's rows: what all of them change in the training stands in the heading."""
    changed = {tuple(training_changes(row)) for row, _ in rows}
    if len(changed) > 1:
        return data_set, [(words(row), fallen) for row, fallen in rows]
    return ", ".join([data_set, *changed.pop()]), [(words(row.partition("+")[0]), fallen) for row, fallen in rows]
