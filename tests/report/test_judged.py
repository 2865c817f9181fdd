"""A model and all of its ledgers are one line."""

import json
import re

import pytest
from pages import read
from report_cases import card, made_up

from linocut.report import verdict, write
from linocut.report.judged import together
from linocut.report.sources import read_all


@pytest.fixture
def ledgers(tmp_path):
    """Of two models a short suite on 1,000 images and a longer one on the last 200 of them."""
    for name, front, stands, falls in (("plain", None, 500, 40), ("defended", "EssentialFeatures", 600, 20)):
        told = {"the_card": card(f"family/{name}+epochs=5", front), "model_hash": name}
        wide = made_up(
            tmp_path / name / "ledger-paper", n=1000, published={"l2": 600}, worst={"l2": stands}, suite="paper", **told
        )
        long = made_up(tmp_path / name / "ledger-strong", n=200, published={"l2": 90}, worst={"l2": falls}, **told)
        header = json.loads((long / "header.json").read_text())
        header["entries"]["l2/another"] = header["entries"]["l2/pgd-margin"]
        (long / "header.json").write_text(json.dumps(header))
        assert wide.exists()
    return tmp_path


def test_published_on_the_most_images_and_worst_over_all_ledgers(ledgers):
    """The short suite leaves its last examples standing, the long one of the first 200 its own last: none holds."""
    model = together(read_all([ledgers / "plain"]))[0]
    assert (model.n, model.suite, model.name) == (1000, "strong", "family/plain+epochs=5")
    assert [ledger.name for ledger in model.ledgers] == [f"{model.name} (paper)", f"{model.name} (strong)"]
    published, same, worst = model.headline("l2")
    assert (published.share.count, published.share.n, same) == (600, 1000, None)
    assert (worst.share.count, worst.share.n) == (0, 200), "the short suite broke the first 500"
    assert model.standing("l2") == set()
    assert [(line.column, line.share.n) for line in model.lines] == [
        ("clean", 1000),
        ("published", 1000),
        ("worst", 200),
    ]


def test_the_images_of_the_longest_ledger_count_or_fewer_that_met_more(tmp_path):
    told = {"model_hash": "x", "published": {"l2": 900}}
    made_up(tmp_path / "wide", n=1000, worst={"l2": 900}, suite="paper", **told)
    made_up(tmp_path / "long", n=200, worst={"l2": 150}, **told | {"published": {"l2": 180}})
    model = together(read_all([tmp_path / "long", tmp_path / "wide"]))[0]
    assert model.longest.n == 1000, "as many attacks: the one with more images"
    assert model.worst["l2"].share.count == 1000 - 100
    worst = model.headline("l2")[2].share
    assert (worst.count, worst.n) == (100, 200), "of the first 200 clearly fewer hold"


def test_a_model_in_other_balls_or_behind_something_else_is_another(tmp_path):
    made_up(tmp_path / "a", published={"l2": 9}, worst={"l2": 9}, model_hash="x")
    made_up(tmp_path / "b", published={"l2": 9}, worst={"l2": 9}, model_hash="x", radii={"l2": 0.5})
    made_up(tmp_path / "c", published={"l2": 9}, worst={"l2": 9}, model_hash="x", preprocess="their:own")
    made_up(tmp_path / "d", published={"l2": 9}, worst={"l2": 9}, model_hash="x")
    models = together(read_all([tmp_path]))
    assert [[ledger.folder.name for ledger in model.ledgers] for model in models] == [["a", "d"], ["b"], ["c"]]
    assert len({model.name for model in models}) == 3


def test_the_verdict_compares_models_under_short_names(ledgers):
    told = verdict.of_many(read_all([ledgers]))
    assert told[0] == "In the worst case defended is not clearly better than plain."
    assert told[1].startswith("defended against plain: L2 ±0.0 points as published")


def test_one_model_by_two_ledgers_gets_a_verdict(ledgers):
    told = verdict.of_many(read_all([ledgers / "plain"]))
    assert told[0].startswith("As published 60.0 % hold in L2; on the 200 images that met every attack the worst case")


def test_the_page_has_a_line_for_each_model_and_a_fold_out_for_each_ledger(ledgers, tmp_path):
    tree = read(write([ledgers / "plain", ledgers / "defended"], tmp_path / "page").read_text())
    rows = list(tree.first("table", id="overview").first("tbody").all("tr"))
    assert [row.attributes["data-ledgers"] for row in rows] == ["1 2", "3 4"]
    assert [link.attributes["href"] for link in rows[0].all("a")] == ["#ledger-2", "#ledger-1", "#ledger-2"]
    assert "of 200" in rows[0].text
    assert len(list(tree.all("details", class_="ledger"))) == 4
    names = [re.sub(r"\s", "", row.first("th").first("a").text) for row in rows]
    assert names == ["family/plain+epochs=5", "family/defended+epochs=5"]
    table = (tmp_path / "page" / "tables.csv").read_text()
    assert table.count("family/plain+epochs=5,") == 3
