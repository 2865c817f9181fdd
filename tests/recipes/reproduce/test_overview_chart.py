"""The overview's picture: a reader finds each row under its data set."""

from xml.etree import ElementTree

import pytest

pytest.importorskip("markupsafe")

from linocut.recipes.reproduce.overview import Cell, Line
from linocut.recipes.reproduce.overview_chart import as_svg


def line(row, data_set="gtsrb", **cells):
    cells = {name: Cell(mean=mean, low=mean, high=mean, n=100, paper=None) for name, mean in cells.items()}
    return Line(data_set=data_set, row=row, judged_on=data_set, seeds=(0,), cells=cells, failed=())


def both(row, data_set="gtsrb"):
    return line(row, data_set, linf_pgd=50, linf_worst=40)


def told(*lines):
    """Headings and names, from top to bottom."""
    found = ElementTree.fromstring(as_svg(lines)).iter("{http://www.w3.org/2000/svg}text")
    words = ["".join(each.itertext()) for each in found if each.get("text-anchor") is None]
    return words[2:]  # after the legend


def test_each_row_stands_under_its_data_set():
    assert told(both("baseline", "mnist"), both("ac-retrained", "gtsrb"), both("ab-retrained", "mnist")) == [
        "mnist",
        "ATTA",
        "ATTA + AB, retrained",
        "gtsrb",
        "ATTA + AC, retrained",
    ]


def test_what_a_training_changes_stands_in_a_heading():
    assert told(both("baseline+epochs=50"), both("ac-retrained+epochs=50"), both("baseline")) == [
        "gtsrb, epochs=50",
        "ATTA",
        "ATTA + AC, retrained",
        "gtsrb",
        "ATTA",
    ]


def test_a_row_without_both_figures_is_left_out():
    assert told(line("baseline", linf_pgd=50), both("ac-retrained")) == ["gtsrb", "ATTA + AC, retrained"]
