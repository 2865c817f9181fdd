"""The published results: every claim that was packed can be replayed here, and the tables say what the rows say."""

import csv
import re
from functools import cache
from pathlib import Path

import pytest

from linocut.evaluation.record import Record
from linocut.evaluation.verify import replay

RESULTS = Path(__file__).parents[1] / "docs" / "results"
LEDGERS = sorted(path.parent for path in RESULTS.glob("*/*/*/ledger-*/header.json"))
FIRST = [ledger for ledger in LEDGERS if ledger.match("cifar-10/baseline/*/ledger-strong")]


read = cache(Record.read)


def name(ledger):
    return str(ledger.relative_to(RESULTS))


@pytest.mark.parametrize("ledger", FIRST, ids=name)
def test_the_packed_claims_of_a_row_hold(ledger):
    outcome = replay(ledger, device_name="cpu")
    assert outcome.failures == []
    assert outcome.confirmed + len(outcome.close) == outcome.claims > 500
    assert len(outcome.close) < 5


@pytest.mark.full
@pytest.mark.parametrize("ledger", [ledger for ledger in LEDGERS if ledger not in FIRST], ids=name)
def test_the_packed_claims_of_every_row_hold(ledger):
    test_the_packed_claims_of_a_row_hold(ledger)


def overview():
    """(data set, row) -> column -> the mean in the table."""
    found = {}
    with (RESULTS / "overview.csv").open() as file:
        for line in csv.DictReader(file):
            found.setdefault((line["data_set"], line["row"]), {})[line["column"]] = float(line["mean"])
    return found


def test_the_overview_says_what_the_rows_say():
    assert len(overview()) >= 3
    for (data_set, row), line in overview().items():
        records = [read(folder) for folder in (RESULTS / data_set / row).glob("seed-*/ledger-paper")]
        for column, share in (
            ("clean", lambda record: record.clean),
            ("linf_pgd", lambda record: record.after("linf/pgd-published")),
            ("l2_pgd", lambda record: record.after("l2/pgd-published")),
        ):
            mean = sum(share(record).percent for record in records) / len(records)
            assert line[column] == pytest.approx(mean, abs=1e-3), (data_set, row, column)


def test_the_page_quotes_the_overview():
    """Its table is typed by hand, so it is checked."""
    page = (RESULTS / "README.md").read_text()
    quoted = {
        "baseline": "ATTA, no transform",
        "ac-retrained": "ATTA through AC",
        "acab-retrained": "ATTA through AC+AB, the paper's transform",
    }
    for row, words in quoted.items():
        [cells] = re.findall(rf"^\| {re.escape(words)} \|(.*)\|$", page, re.MULTILINE)
        typed = [float(cell.strip(" *")) for cell in cells.split("|")]
        line = overview()["cifar-10", row]
        columns = ("clean", "linf_pgd", "linf_worst", "l2_pgd", "l2_worst")
        assert typed == [pytest.approx(line[column], abs=0.0501) for column in columns]
        assert typed[2::2] == [pytest.approx(line[column], abs=1e-3) for column in columns[2::2]]


def lasting(row, norm, rounded=False):
    """The examples of `strong` that nothing in any ledger of a row broke; or whose broken images do not last as PNG."""
    records = [read(RESULTS / "cifar-10" / row / "seed-0" / f"ledger-{suite}") for suite in ("paper", "strong")]
    lost = {
        attacked.example
        for record in records
        for entry in record.counting(norm)
        for attacked in record.of[entry].values()
        if attacked.broken and not (rounded and attacked.quantised == attacked.label)
    }
    return set(records[1].of["clean"]) - records[1].wrong() - lost


@pytest.mark.parametrize(
    ("row", "norm", "gained", "lost"),
    [
        ("ac-retrained", "linf", 30, 107),
        ("ac-retrained", "l2", 35, 5),
        ("acab-retrained", "linf", 26, 150),
        ("acab-retrained", "l2", 24, 11),
    ],
)
def test_the_page_counts_the_images_on_which_two_rows_differ(row, norm, gained, lost):
    mine, base = lasting(row, norm), lasting("baseline", norm)
    assert (len(mine - base), len(base - mine)) == (gained, lost)


@pytest.mark.parametrize(
    ("row", "norm", "percent"),
    [
        ("baseline", "linf", 40.05),
        ("baseline", "l2", 3.65),
        ("acab-retrained", "linf", 40.80),
        ("acab-retrained", "l2", 11.95),
    ],
)
def test_the_page_says_what_rounding_leaves(row, norm, percent):
    assert len(lasting(row, norm, rounded=True)) / 20 == percent
    assert f"{percent:.2f}" in (RESULTS / "README.md").read_text()
