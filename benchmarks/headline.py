"""Draws docs/images/headline.svg from the published overviews: `python benchmarks/headline.py`."""

import csv
from pathlib import Path

from linocut.report.charts.pairs import Fall, falls_chart

DOCS = Path(__file__).parents[1] / "docs"
NAMES = {"baseline": "no transform", "fixed-retrained": "fixed codes", "ac-retrained": "AC", "acab-retrained": "AC+AB"}
GROUPS = {  # heading: folder of results, data set
    "CIFAR-10, the paper's recipe": ("paper-recipe", "cifar-10"),
    "CIFAR-10, our quicker recipe": (".", "cifar-10"),
    "CIFAR-10, WRN-34-10, trained briefly": ("wrn-34-10", "cifar-10"),
    "CIFAR-10, trained in L2": ("l2-training", "cifar-10"),
    "GTSRB, a tenth": (".", "gtsrb"),
    "Fashion-MNIST": (".", "fashion-mnist"),
    "MNIST": (".", "mnist"),
}


def rows(folder: str, data_set: str) -> list[tuple[str, dict[str, Fall]]]:
    """The rows of adversarial training that are published there, in the order of NAMES."""
    table: dict[str, dict[str, tuple[float, int]]] = {}
    with (DOCS / "results" / folder / "overview.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            if line["data_set"] == data_set:
                cells = table.setdefault(line["row"].partition("+")[0], {})
                assert line["column"] not in cells, f"{folder}: {line['row']} was trained in two ways"
                cells[line["column"]] = float(line["mean"]), int(line["n"])
    return [
        (
            told,
            {
                norm: Fall(published=table[row][f"{norm}_pgd"][0], worst=worst, n=n)
                for norm in ("linf", "l2")
                for worst, n in [table[row][f"{norm}_worst"]]
            },
        )
        for row, told in NAMES.items()
        if row in table
    ]


def headline() -> str:
    groups = [(heading, rows(*place)) for heading, place in GROUPS.items()]
    return falls_chart(groups, title="Adversarially trained networks, as published and in the worst case")


if __name__ == "__main__":
    (DOCS / "images" / "headline.svg").write_text(headline(), encoding="utf-8")
