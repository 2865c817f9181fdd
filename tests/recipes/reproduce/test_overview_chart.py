"""The overview's picture: a reader finds each row under its data set."""

from xml.etree import ElementTree

import pytest

pytest.importorskip("markupsafe")

from linocut.recipes.reproduce.overview import Cell, Line
from linocut.recipes.reproduce.overview_chart import as_svg


def line(row, **cells):
    cells = {name: Cell(mean=mean, low=mean, high=mean, n=100, paper=None) for name, mean in cells.items()}
    return Line(data_set="gtsrb", row=row, judged_on="gtsrb", seeds=(0,), cells=cells, failed=())


def told(*lines):
    found = ElementTree.fromstring(as_svg(lines))
    return {"".join(each.itertext()) for each in found.iter("{http://www.w3.org/2000/svg}text")}


def both(row):
    return line(row, linf_pgd=50, linf_worst=40)


def test_what_all_rows_change_stands_in_their_heading():
    assert {"gtsrb, epochs=50", "ATTA", "ATTA + AC, retrained"} <= told(
        both("baseline+epochs=50"), both("ac-retrained+epochs=50")
    )


def test_what_only_some_rows_change_stands_with_them():
    assert {"gtsrb", "ATTA", "ATTA + AC, retrained, epochs=50"} <= told(
        both("baseline"), both("ac-retrained+epochs=50")
    )


def test_a_row_without_both_figures_is_left_out():
    words = told(line("baseline", linf_pgd=50), both("ac-retrained"))
    assert "ATTA + AC, retrained" in words
    assert "ATTA" not in words
