"""The 69 rows of the paper's tables, so that a measured figure can stand beside the published one."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

FIGURES = ("accuracy", "l2_pgd", "linf_pgd", "l2_square_500", "linf_square_500")


@dataclass(frozen=True, kw_only=True)
class PaperRow:
    """One line of a table: percentages, None where the paper reports nothing.

    `transform` is none, fixed, ac, ab or ac+ab; `transform_at` is none, test ("pretrained") or train ("retrained").
    The columns that end in _500 are Square's, on 500 images.
    """

    dataset: str
    training: str
    transform: str
    transform_at: str
    accuracy: float | None
    l2_pgd: float | None
    linf_pgd: float | None
    l2_square_500: float | None
    linf_square_500: float | None


@cache
def rows() -> tuple[PaperRow, ...]:
    """All rows, in the order of the paper's tables."""
    text = resources.files("linocut.report").joinpath("paper.csv").read_text(encoding="utf-8")
    return tuple(
        PaperRow(
            dataset=line["dataset"],
            training=line["training"],
            transform=line["transform"],
            transform_at=line["transform_at"],
            **{name: float(line[name]) if line[name] else None for name in FIGURES},
        )
        for line in csv.DictReader(text.splitlines())
    )


def find(dataset: str, training: str, transform: str, transform_at: str) -> PaperRow | None:
    """The paper's row of this model, or None where it has none."""
    wanted = (dataset, training, transform, transform_at)
    return next((row for row in rows() if (row.dataset, row.training, row.transform, row.transform_at) == wanted), None)


def is_another(name: str) -> bool:
    """Whether a row's name says that its transform, or the ball it was trained in, is not the paper's.

    >>> is_another("baseline+epochs=5"), is_another("baseline+norm=l2"), is_another("acab-retrained@order=bins")
    (False, True, True)
    """
    plain, *changes = name.split("+")
    return "@" in plain or any(change.startswith(("norm=", "eps=")) for change in changes)
