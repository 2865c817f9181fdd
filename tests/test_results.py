"""The published results: every claim that was packed can be replayed here, and the tables say what the rows say."""

import csv
import json
import math
import re
from functools import cache
from pathlib import Path

import pytest

from linocut.evaluation.findings.strength import ascent
from linocut.evaluation.record import Record
from linocut.evaluation.verify import replay
from linocut.report.words import rounded

RESULTS = Path(__file__).parents[1] / "docs" / "results"
EVIDENCE = RESULTS / "evidence.md"
PAPERS, IN_L2, LARGE = (RESULTS / name for name in ("paper-recipe", "l2-training", "wrn-34-10"))
L2 = "+norm=l2+eps=1.74+step_size=0.435+canvas_store=half"
SHORT = "+num_steps=1+epochs=10"
FEW = "+batch_size=128+learning_rate=0.1+epochs=50"
LEDGERS = sorted(path.parent for path in RESULTS.rglob("ledger-*/header.json"))
WITH_WEIGHTS = [ledger for ledger in LEDGERS if any((ledger.parent / "model").glob("weights-*"))]
FIRST = [RESULTS / "cifar-10" / "baseline" / "seed-0" / "ledger-strong"]


read = cache(Record.read)


def name(ledger):
    return str(ledger.relative_to(RESULTS))


@pytest.mark.parametrize("ledger", FIRST, ids=name)
def test_the_packed_claims_of_a_row_hold(ledger):
    outcome = replay(ledger, device_name="cpu")
    assert outcome.failures == []
    assert outcome.confirmed + len(outcome.close) == outcome.claims > 400
    # Square stops where it wins, which for a network that nothing holds is often just past the border.
    assert len(outcome.close) <= max(4, outcome.claims // 200)


@pytest.mark.full
@pytest.mark.parametrize("ledger", [ledger for ledger in WITH_WEIGHTS if ledger not in FIRST], ids=name)
def test_the_packed_claims_of_every_row_hold(ledger):
    test_the_packed_claims_of_a_row_hold(ledger)


def test_only_large_networks_lack_their_weights_and_say_what_was_confirmed():
    lacking = [ledger for ledger in LEDGERS if ledger not in WITH_WEIGHTS]
    assert {ledger.relative_to(RESULTS).parts[0] for ledger in lacking} == {LARGE.name}
    for ledger in lacking:
        told = json.loads((ledger / "verification.json").read_text())
        assert told["confirmed"] == told["claims"] > 1000
        assert told["failures"] == told["packed"]["failures"] == []
        card = json.loads((ledger.parent / "model" / "card.json").read_text())
        assert card["weights"]["bytes"] > 10_000_000


def test_the_page_counts_the_claims():
    told = [json.loads((ledger / "verification.json").read_text()) for ledger in LEDGERS]
    packed = sum(each["packed"]["claims"] for each, ledger in zip(told, LEDGERS, strict=True) if ledger in WITH_WEIGHTS)
    page = (RESULTS / "README.md").read_text()
    assert all(each["claims"] == each["confirmed"] + len(each["close"]) for each in told)
    assert f"all {sum(each['claims'] for each in told):,} claims of the {len(LEDGERS)} ledgers" in page
    assert f"of the {packed:,} packed claims" in page


@cache
def overview(results):
    """(data set, row) -> column -> the mean in the table."""
    found = {}
    with (results / "overview.csv").open() as file:
        for line in csv.DictReader(file):
            found.setdefault((line["data_set"], line["row"]), {})[line["column"]] = float(line["mean"])
    return found


@pytest.mark.parametrize(
    ("results", "rows"),
    [(RESULTS, 34), (PAPERS, 2), (IN_L2, 3), (LARGE, 2)],
    ids=["small", "paper-recipe", "l2-training", "wrn-34-10"],
)
def test_the_overview_says_what_the_rows_say(results, rows):
    assert len(overview(results)) >= rows
    for (data_set, row), line in overview(results).items():
        records = [read(folder) for folder in (results / data_set / row).glob("seed-*/ledger-paper")]
        for column, share in (
            ("clean", lambda record: record.clean),
            ("linf_pgd", lambda record: record.after(published_pgd(record, "linf"))),
            ("l2_pgd", lambda record: record.after(published_pgd(record, "l2"))),
        ):
            mean = sum(share(record).percent for record in records) / len(records)
            assert line[column] == pytest.approx(mean, abs=1e-3), (data_set, row, column)


def published_pgd(record, norm):
    """A fixed codebook's is the loop of Chen et al."""
    return next(name for name in (f"{norm}/chen-published", f"{norm}/pgd-published") if name in record.of)


def test_the_picture_of_the_results_is_drawn_from_the_overviews(monkeypatch):
    pytest.importorskip("markupsafe")
    monkeypatch.syspath_prepend(str(RESULTS.parents[1] / "benchmarks"))
    from headline import headline

    assert (RESULTS.parent / "images" / "headline.svg").read_text(encoding="utf-8") == headline()


QUOTED = {
    (RESULTS, "cifar-10"): {
        "baseline": "ATTA, no transform",
        "fixed-pretrained": "300 fixed codes before that network",
        "fixed-retrained": "ATTA through 300 fixed codes",
        "ab-retrained": "ATTA through AB",
        "ac-pretrained": "AC before the network of the first row",
        "ac-retrained": "ATTA through AC",
        "acab-pretrained": "AC+AB before the network of the first row",
        "acab-retrained": "ATTA through AC+AB, the paper's transform",
        "natural": "natural training",
        "natural-fixed-pretrained": "300 fixed codes before the natural network",
        "natural-fixed-retrained": "natural training through 300 fixed codes",
        "natural-acab-pretrained": "AC+AB before the natural network",
        "natural-acab-retrained": "natural training through AC+AB",
    },
    (IN_L2, "cifar-10"): {
        f"baseline{L2}": "ATTA in L2, no transform",
        f"ac-retrained{L2}": "ATTA in L2 through AC",
        f"acab-retrained{L2}": "ATTA in L2 through AC+AB",
    },
    (LARGE, "cifar-10"): {
        f"baseline{SHORT}": "WRN-34-10, no transform",
        f"acab-retrained{SHORT}": "WRN-34-10 through AC+AB",
    },
    (PAPERS, "cifar-10"): {
        "baseline": "the paper's recipe, no transform",
        "acab-retrained": "the paper's recipe through AC+AB",
    },
    (RESULTS, "mnist"): {
        "baseline": "no transform",
        "fixed-pretrained": "two fixed codes before that network",
        "ac-pretrained": "AC before that network",
        "ac-retrained": "trained through AC",
        "acab-pretrained": "AC+AB before that network",
        "acab-retrained": "trained through AC+AB",
        "fixed-retrained": "trained through two fixed codes",
        "ab-retrained": "trained through AB",
        "natural": "trained naturally",
        "natural-fixed-pretrained": "two fixed codes before the naturally trained network",
        "natural-fixed-retrained": "trained naturally through two fixed codes",
        "natural-acab-pretrained": "AC+AB before the naturally trained network",
        "natural-acab-retrained": "trained naturally through AC+AB",
    },
    (RESULTS, "fashion-mnist"): {
        "baseline": "Fashion-MNIST, no transform",
        "fixed-pretrained": "two fixed codes before it",
        "fixed-retrained": "ATTA through two fixed codes",
        "ac-retrained": "Fashion-MNIST, through AC",
        "acab-retrained": "Fashion-MNIST, through AC+AB",
    },
    (RESULTS, "gtsrb"): {
        f"baseline{FEW}": "GTSRB, no transform",
        f"ac-retrained{FEW}": "GTSRB, through AC",
        f"acab-retrained{FEW}": "GTSRB, through AC+AB",
    },
}


def seeds(place, row):
    return sorted(int(folder.name.removeprefix("seed-")) for folder in (RESULTS / place / row).glob("seed-*"))


@pytest.mark.parametrize(("results", "data_set"), QUOTED, ids=lambda value: str(getattr(value, "name", value)))
def test_the_page_quotes_the_rows(results, data_set):
    """Its tables are typed by hand, so they are checked: means over seeds, with the lowest and highest."""
    page = (RESULTS / "README.md").read_text()
    place = (results / data_set).relative_to(RESULTS)
    for row, words in QUOTED[results, data_set].items():
        [cells] = re.findall(rf"^\| {re.escape(words)} \|(.*)\|$", page, re.MULTILINE)
        folder, *typed = (cell.replace("*", "").strip() for cell in cells.split("|"))
        assert folder in (row, row.split("+")[0] + "+…")
        there = seeds(place, row)
        assert int(typed.pop(0)) == len(there) if len(typed) > 5 else there == [0]
        records = [read(RESULTS / place / row / f"seed-{seed}" / "ledger-paper") for seed in there]
        for told, share in (
            (typed[0], lambda record: record.clean),
            (typed[1], lambda record: record.after(published_pgd(record, "linf"))),
            (typed[3], lambda record: record.after(published_pgd(record, "l2"))),
        ):
            mean = sum(share(record).percent for record in records) / len(records)
            assert told == rounded(mean, 1), row
        for told, norm in ((typed[2], "linf"), (typed[4], "l2")):
            assert told == held(place, row, norm), row


def held(place, row, norm):
    """What the page says of a worst case."""
    percents = []
    for seed in seeds(place, row):
        judged = len(read(RESULTS / place / row / f"seed-{seed}" / "ledger-strong").of["clean"])
        percents.append(100 * len(lasting(place, row, norm, seed=seed)) / judged)
    mean = rounded(sum(percents) / len(percents), 2)
    return mean if len(percents) == 1 else f"{mean} ({min(percents):.2f}–{max(percents):.2f})"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("baseline", "our quicker recipe, no transform"),
        ("ac-retrained", "our quicker recipe, through the codebook alone (AC)"),
        ("acab-retrained", "our quicker recipe, through the whole transform (AC+AB)"),
    ],
)
def test_the_first_page_quotes_the_means(row, words):
    page = (RESULTS.parents[1] / "README.md").read_text()
    line = overview(RESULTS)["cifar-10", row]
    columns = ("clean", "linf_pgd", "linf_worst", "l2_pgd", "l2_worst")
    told = [rounded(line[column], 2 if column.endswith("worst") else 1) for column in columns]
    assert f"| {words} | {' | '.join(told)} |" in page


ELSEWHERE = {
    "CIFAR-10, WRN-34-10, trained briefly, L∞": ("wrn-34-10/cifar-10", SHORT, "linf"),
    "CIFAR-10, trained and judged in L2": ("l2-training/cifar-10", L2, "l2"),
    "Fashion-MNIST, L∞": ("fashion-mnist", "", "linf"),
    "a tenth of GTSRB, L∞": ("gtsrb", FEW, "linf"),
    "a tenth of GTSRB, L2": ("gtsrb", FEW, "l2"),
    "MNIST, L∞ (two fixed codes: 92.25)": ("mnist", "", "linf"),
}


@pytest.mark.parametrize("words", ELSEWHERE)
def test_the_first_page_quotes_the_worst_cases_elsewhere(words):
    place, changes, norm = ELSEWHERE[words]
    rows = (f"{row}{changes}" for row in ("baseline", "ac-retrained", "acab-retrained"))
    told = [held(place, row, norm) if (RESULTS / place / row).exists() else "" for row in rows]
    assert f"| {words} | {' | '.join(told)} |".replace("|  |", "| |") in (RESULTS.parents[1] / "README.md").read_text()
    if "codes" in words:
        assert held(place, "fixed-retrained", norm) in words


@cache
def lasting(place, row, norm, rounded=False, seed=0):
    """The examples of `strong` that nothing in any ledger of a row broke; or whose broken images do not last as PNG."""
    records = [read(RESULTS / place / row / f"seed-{seed}" / f"ledger-{suite}") for suite in ("paper", "strong")]
    lost = {
        attacked.example
        for record in records
        for entry in record.counting(norm)
        for attacked in record.of[entry].values()
        if attacked.broken and not (rounded and attacked.quantised == attacked.label)
    }
    return set(records[1].of["clean"]) - records[1].wrong() - lost


@pytest.mark.parametrize(
    ("place", "row", "norm", "gained", "lost"),
    [
        ("l2-training/cifar-10", f"ac-retrained{L2}", "linf", 38, 43),
        ("l2-training/cifar-10", f"ac-retrained{L2}", "l2", 29, 43),
        ("l2-training/cifar-10", f"acab-retrained{L2}", "linf", 28, 76),
        ("l2-training/cifar-10", f"acab-retrained{L2}", "l2", 15, 71),
        ("wrn-34-10/cifar-10", f"acab-retrained{SHORT}", "linf", 25, 130),
        ("wrn-34-10/cifar-10", f"acab-retrained{SHORT}", "l2", 14, 9),
        ("paper-recipe/cifar-10", "acab-retrained", "linf", 0, 870),
        ("mnist", "ac-retrained", "linf", 71, 22),
        ("mnist", "ac-pretrained", "linf", 53, 10),
        ("mnist", "fixed-pretrained", "linf", 57, 10),
        ("mnist", "fixed-retrained", "linf", 77, 23),
        ("mnist", "ab-retrained", "linf", 3, 25),
        ("fashion-mnist", "ac-retrained", "linf", 8, 213),
        ("fashion-mnist", "ac-retrained", "l2", 11, 9),
        ("fashion-mnist", "acab-retrained", "linf", 3, 291),
        ("fashion-mnist", "acab-retrained", "l2", 23, 9),
        ("fashion-mnist", "fixed-retrained", "linf", 83, 283),
        ("fashion-mnist", "fixed-retrained", "l2", 0, 29),
        ("fashion-mnist", "fixed-pretrained", "linf", 77, 252),
        ("fashion-mnist", "fixed-pretrained", "l2", 11, 19),
        ("gtsrb", f"ac-retrained{FEW}", "linf", 7, 55),
        ("gtsrb", f"ac-retrained{FEW}", "l2", 33, 6),
        ("gtsrb", f"acab-retrained{FEW}", "linf", 9, 77),
        ("gtsrb", f"acab-retrained{FEW}", "l2", 26, 14),
    ],
)
def test_the_page_counts_the_images_on_which_two_rows_differ(place, row, norm, gained, lost):
    base = "baseline" + row[row.find("+") :] * ("+" in row)
    assert differing(lasting(place, row, norm), lasting(place, base, norm)) == (gained, lost)
    assert told(gained, lost)


def differing(mine, theirs):
    """How many images hold only in the one, and only in the other."""
    return len(mine - theirs), len(theirs - mine)


def told(gained, lost):
    return re.search(rf"\b{gained} (images )?(hold only [a-z ]+,|against) {lost}\b", EVIDENCE.read_text())


COMPARED = {
    "AB in training": "ab-retrained",
    "AC in training": "ac-retrained",
    "AC+AB in training": "acab-retrained",
    "300 fixed codes in training": "fixed-retrained",
    "AC at test": "ac-pretrained",
    "AC+AB at test": "acab-pretrained",
    "300 fixed codes at test": "fixed-pretrained",
}


@pytest.mark.parametrize("words", COMPARED)
def test_the_table_of_the_evidence_counts_the_images_on_which_rows_differ(words):
    row, page = COMPARED[words], EVIDENCE.read_text()
    lines = [line.split(" | ") for line in re.findall(rf"^\| {re.escape(words)} \| (.*) \|$", page, re.MULTILINE)]
    assert [int(cells[0]) for cells in lines] == seeds("cifar-10", row)
    for seed, *cells in lines:
        for norm, (points, counts, p) in (("linf", cells[:3]), ("l2", cells[3:])):
            mine, theirs = (lasting("cifar-10", each, norm, seed=int(seed)) for each in (row, "baseline"))
            gained, lost = differing(mine, theirs)
            assert counts == f"{gained}, {lost}"
            assert float(points.replace("−", "-")) == (gained - lost) / 20
            assert float(p) == pytest.approx(of_a_fair_coin(gained, lost), rel=0.5)


def of_a_fair_coin(gained, lost):
    """How often it would split so many images as unevenly."""
    n = gained + lost
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(min(gained, lost) + 1)) / 2**n)


@pytest.mark.parametrize(("seed", "gained", "lost"), [(0, 24, 7), (1, 20, 4)])
def test_the_page_counts_what_training_through_fixed_codes_adds(seed, gained, lost):
    mine, theirs = (lasting("cifar-10", f"fixed-{since}", "l2", seed=seed) for since in ("retrained", "pretrained"))
    assert differing(mine, theirs) == (gained, lost)
    assert told(gained, lost)


def test_the_page_counts_what_codes_do_to_natural_training_on_mnist():
    fixed, whole = (lasting("mnist", f"natural-{row}-retrained", "linf") for row in ("fixed", "acab"))
    assert differing(fixed, whole) == (110, 6)
    assert "110 images hold only behind the fixed codes, 6 only behind AC+AB" in EVIDENCE.read_text()
    at_test, whole_at_test = (lasting("mnist", f"natural-{row}-pretrained", "linf") for row in ("fixed", "acab"))
    assert differing(at_test, whole_at_test) == (115, 3)
    assert differing(fixed, at_test) == (68, 30)
    assert "between the last two 115 and 3" in EVIDENCE.read_text()
    assert "68 hold only with these in training, 30 only with them at test" in EVIDENCE.read_text()


def test_the_page_counts_what_training_in_l2_changes():
    mine, theirs = lasting("l2-training/cifar-10", f"baseline{L2}", "l2"), lasting("cifar-10", "baseline", "l2")
    assert differing(mine, theirs) == (432, 6)
    assert told(432, 6)


def test_the_conclusions_say_what_transforms_cost_and_add():
    def changes(place, row, norm, base="baseline"):
        """The mean over seeds of what the worst case loses."""
        lost = [
            len(lasting(place, base, norm, seed=seed)) - len(lasting(place, row, norm, seed=seed))
            for seed in seeds(place, row)
        ]
        return rounded(abs(sum(lost)) / len(lost) / 20, 2), [each / 20 for each in lost]

    rows = ("acab-retrained", "ac-retrained", "fixed-retrained", "ab-retrained")
    (whole, each), (book, _), (fixed, _), (blur, _) = (changes("cifar-10", row, "linf") for row in rows)
    large, _ = changes("wrn-34-10/cifar-10", f"acab-retrained{SHORT}", "linf", base=f"baseline{SHORT}")
    page = (RESULTS / "README.md").read_text()
    assert f"AC+AB {whole} points in the worst case, AC {book}, 300 fixed codes {fixed}, AB {blur} (" in page
    assert f"AC+AB by {min(each):.2f} to {max(each):.2f};" in page
    assert all(lost > 0 for row in rows for lost in changes("cifar-10", row, "linf")[1])
    assert f"trained briefly, AC+AB costs {large}." in page
    (whole, each), (book, each_book) = (changes("cifar-10", row, "l2") for row in rows[:2])
    assert f"keeps {whole}, AC 4.2 and {book} (means of three seeds)" in page
    evidence = EVIDENCE.read_text()
    for found in (each, each_book):
        assert "{:.2f}, {:.2f} and {:.2f}".format(*(abs(one) for one in found)) in evidence


@pytest.mark.parametrize(
    ("place", "row", "norm", "percents"),
    [
        ("cifar-10", "baseline", "l2", (5.35, 5.40, 6.00)),
        ("cifar-10", "acab-retrained", "linf", (42.75, 42.30, 43.65)),
        ("cifar-10", "acab-retrained", "l2", (14.20, 13.70, 13.25)),
        ("paper-recipe/cifar-10", "acab-retrained", "linf", (43.20,)),
        ("paper-recipe/cifar-10", "acab-retrained", "l2", (44.30,)),
    ],
)
def test_the_evidence_says_what_rounding_leaves(place, row, norm, percents):
    assert tuple(len(lasting(place, row, norm, True, seed)) / 20 for seed in seeds(place, row)) == percents
    *others, last = (f"{percent:.2f}" for percent in percents)
    assert ", ".join(others) + " and " * bool(others) + last in EVIDENCE.read_text()


def test_rounding_takes_nothing_from_what_broke_the_network_without_a_transform():
    for seed in seeds("cifar-10", "baseline"):
        assert lasting("cifar-10", "baseline", "linf", True, seed) == lasting("cifar-10", "baseline", "linf", seed=seed)


@pytest.mark.parametrize(("row", "lower"), [("baseline", (0, 0)), ("acab-retrained", (62, 68))])
def test_the_page_says_how_often_the_published_attack_climbs_down(row, lower):
    record = read(PAPERS / "cifar-10" / row / "seed-0" / "ledger-paper")
    assert tuple(round(ascent(record, norm).numbers["lower"]["percent"]) for norm in ("linf", "l2")) == lower
