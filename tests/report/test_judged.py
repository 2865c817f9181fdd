"""A model and all of its ledgers are one line, in the table, in the sentences and in the files beside the page."""

import csv
import json
from dataclasses import replace

import pytest
from pages import read
from report_cases import card, made_up

from linocut.evaluation.rows import from_line, to_line
from linocut.report import verdict, write
from linocut.report.judged import together
from linocut.report.sources import read_all
from linocut.report.words import in_common, told_apart


def longer(ledger):
    """The ledger with one attack more in its suite."""
    header = json.loads((ledger / "header.json").read_text())
    header["entries"]["l2/another"] = header["entries"]["l2/pgd-margin"]
    (ledger / "header.json").write_text(json.dumps(header))
    return ledger


def two_suites(folder, name, front=None, *, wide=(1000, 950, 900), long=(200, 90, 40), **told):
    """A short suite on many images and a longer one on the first of them: images, published, worst of each."""
    told = {"the_card": card(f"family/{name}+epochs=5", front), "model_hash": name} | told
    for suite, (n, published, worst) in (("paper", wide), ("strong", long)):
        made_up(folder / f"ledger-{suite}", n=n, published={"l2": published}, worst={"l2": worst}, suite=suite, **told)
    longer(folder / "ledger-strong")
    return folder


def unfinished(ledger, rows):
    """The ledger as it is while its run goes on, with so many rows."""
    (ledger / "parts").mkdir()
    lines = (ledger / "rows.jsonl").read_text().splitlines(keepends=True)
    (ledger / "parts" / "rank-0.jsonl").write_text("".join(lines[:rows]))
    (ledger / "rows.jsonl").unlink()


def written(folders, out):
    """The rows of the table, and the lines of tables.csv by model and column."""
    tree = read(write(folders, out).read_text())
    with (out / "tables.csv").open() as file:
        lines = {(line["model"], line["column"], line["attack"]): line for line in csv.DictReader(file)}
    return list(tree.first("table", id="overview").first("tbody").all("tr")), lines


def test_published_on_the_most_images_and_worst_over_all_ledgers(tmp_path):
    """Of 200 images the long suite leaves the last 40, the short one of 1,000 the last 900: of 200 the last 100."""
    model = together(read_all([two_suites(tmp_path / "m", "m", wide=(1000, 950, 900))]))[0]
    assert (model.n, model.name) == (1000, "family/m+epochs=5")
    assert [ledger.name for ledger in model.ledgers] == [f"{model.name} (paper)", f"{model.name} (strong)"]
    published, same, worst = model.headline("l2")
    assert (published.share.count, published.share.n, same) == (950, 1000, None)
    assert (worst.share.count, worst.share.n) == (40, 200)
    assert model.standing("l2") == set(range(160, 200))
    told = [(line.column, line.share.count, line.share.n) for line in model.lines]
    assert told == [("clean", 1000, 1000), ("published", 950, 1000), ("worst", 40, 200)]


def test_what_one_ledger_broke_is_lost_in_all(tmp_path):
    model = together(read_all([two_suites(tmp_path / "m", "m", wide=(1000, 950, 830))]))[0]
    assert model.standing("l2") == set(range(170, 200))


def test_page_and_tables_say_the_same(tmp_path):
    for name, worst in (("a", 900), ("b", 830)):
        two_suites(tmp_path / name, name, wide=(1000, 950, worst))
    rows, lines = written([tmp_path / "a", tmp_path / "b"], tmp_path / "page")
    for row, name in zip(rows, "ab", strict=True):
        shown = [cell.attributes["data-value"] for cell in row.all("td") if cell.attributes.get("data-norm") == "l2"]
        told = [lines[f"family/{name}+epochs=5", *of] for of in (("published", "pgd-published"), ("worst", ""))]
        assert [float(value) for value in shown] == [float(line["percent"]) for line in told]
        assert "of 200" in row.text


def test_an_attack_on_fewer_images_has_the_worst_case_on_these_beside_it(tmp_path):
    two_suites(tmp_path / "m", "m", square=(50, 20))
    [model] = together(read_all([tmp_path]))
    told = [(line.column, line.attack, line.share.count, line.share.n) for line in model.lines if line.norm]
    assert ("published", "square-published", 20, 50) in told
    assert ("worst, same examples", "square-published", 20, 50) in told


def test_the_papers_attack_is_published_before_others(tmp_path):
    """The ledger with more images has but Square."""
    wide = made_up(tmp_path / "wide", n=300, published={"l2": 9}, worst={"l2": 9}, square=(50, 9), model_hash="m")
    header = json.loads((wide / "header.json").read_text())
    del header["entries"]["l2/pgd-published"]
    (wide / "header.json").write_text(json.dumps(header))
    rows = (wide / "rows.jsonl").read_text().splitlines(keepends=True)
    (wide / "rows.jsonl").write_text("".join(row for row in rows if '"l2/pgd-published"' not in row))
    longer(longer(made_up(tmp_path / "long", n=200, published={"l2": 90}, worst={"l2": 9}, model_hash="m")))
    [model] = together(read_all([wide, tmp_path / "long"]))
    assert model.headline("l2")[0].attack == "pgd-published"
    made_up(tmp_path / "other", published={"l2": 9}, worst={"l2": 9})
    rows, _ = written([wide, tmp_path / "long", tmp_path / "other"], tmp_path / "page")
    assert rows[0].text.count("of 200") == 2


def test_other_balls_or_another_preprocessing_are_another_model(tmp_path):
    both = {"published": {"l2": 9}, "worst": {"l2": 9}, "model_hash": "x"}
    made_up(tmp_path / "a", **both)
    made_up(tmp_path / "b", **both, radii={"l2": 0.5})
    made_up(tmp_path / "c", **both, preprocess="their:own")
    made_up(tmp_path / "d", **both)
    models = together(read_all([tmp_path]))
    assert [[ledger.folder.name for ledger in model.ledgers] for model in models] == [["a", "d"], ["b"], ["c"]]
    assert [model.name for model in models] == ["m", "m (b)", "m (c)"]


@pytest.mark.parametrize("rows", [0, 10, 450])
def test_an_unfinished_ledger_has_a_line_of_its_own(tmp_path, rows):
    two_suites(tmp_path / "m", "m")
    unfinished(tmp_path / "m" / "ledger-strong", rows)
    models = together(read_all([tmp_path / "m"]))
    assert [(model.name, model.unfinished) for model in models] == [
        ("family/m+epochs=5 (paper)", False),
        ("family/m+epochs=5 (strong)", True),
    ]
    table, lines = written([tmp_path / "m"], tmp_path / "page")
    assert "nan" not in (tmp_path / "page" / "report.html").read_text()
    assert lines["family/m+epochs=5 (paper)", "worst", ""]["percent"] == "90.0"
    assert [row.attributes["data-status"] for row in table][1] == "unfinished"
    told = verdict.of_many(read_all([tmp_path / "m"]))
    assert told[-1] == "1 of 2 runs is unfinished."


def test_ledgers_of_other_images_have_lines_of_their_own(tmp_path):
    """Of its 200 images the longer ledger shares 100 with the other: no image of the rest met both."""
    wide = made_up(tmp_path / "wide", n=1000, published={"l2": 600}, worst={"l2": 500}, model_hash="m")
    long = longer(made_up(tmp_path / "long", n=200, published={"l2": 90}, worst={"l2": 40}, model_hash="m"))
    moved = [from_line(line) for line in (long / "rows.jsonl").read_text().splitlines(keepends=True)]
    (long / "rows.jsonl").write_text("".join(to_line(replace(row, example=row.example + 900)) for row in moved))
    models = together(read_all([wide, long]))
    assert [len(model.ledgers) for model in models] == [1, 1]


def test_the_verdict_compares_models_by_what_both_have(tmp_path):
    two_suites(tmp_path / "plain", "plain")
    two_suites(tmp_path / "mine", "mine", "EssentialFeatures", long=(200, 120, 20))
    told = verdict.of_many(read_all([tmp_path / "mine", tmp_path / "plain"]))
    assert told[0] == "In the worst case mine keeps 10.0 points less in L2 than plain."
    assert told[1].startswith("mine against plain: L2 ±0.0 points as published, −10.0 in the worst case")
    told = verdict.of_many(read_all([tmp_path / "mine", tmp_path / "plain" / "ledger-strong"]))
    assert told[1].startswith("mine against plain: L2 +15.0 points as published"), "on the images of both"


def test_the_twin_is_the_one_that_the_ledger_names(tmp_path):
    two_suites(tmp_path / "plain", "plain")
    two_suites(tmp_path / "other", "other", long=(200, 90, 5))
    two_suites(tmp_path / "mine", "mine", "EssentialFeatures", long=(200, 90, 20), twin_hash="plain")
    told = verdict.of_many(read_all([tmp_path / "other", tmp_path / "mine", tmp_path / "plain"]))
    assert told[0] == "In the worst case mine keeps 10.0 points less in L2 than plain."
    told = verdict.of_many(read_all([tmp_path / "other", tmp_path / "mine"]))
    assert "mine against" not in " ".join(told)


def test_pairs_beyond_the_first_are_mentioned(tmp_path):
    two_suites(tmp_path / "plain", "plain")
    for i in range(8):
        two_suites(tmp_path / f"mine-{i}", f"mine-{i}", "EssentialFeatures")
    assert verdict.of_many(read_all([tmp_path]))[-1] == "And 2 more, in the table."


def test_one_model_by_two_ledgers_gets_the_verdict_of_all(tmp_path):
    two_suites(tmp_path / "m", "m", wide=(1000, 950, 830))
    told = verdict.of_many(read_all([tmp_path / "m"]))
    assert told[0].startswith(
        "Of the 200 images that met every attack: as published 45.0 % hold in L2; the worst case of all ledgers leaves"
    )
    assert "leaves 15.0 %" in told[0]
    two_suites(tmp_path / "zero", "zero", wide=(100, 0, 0), long=(20, 0, 0), wrong=100)
    assert "check labels" in verdict.of_many(read_all([tmp_path / "zero"]))[0]


def test_the_page_has_a_line_for_each_model_and_a_fold_out_for_each_ledger(tmp_path):
    for name in ("plain", "defended"):
        two_suites(tmp_path / name, name)
    rows, _ = written([tmp_path / "plain", tmp_path / "defended"], tmp_path / "page")
    assert [row.attributes["data-ledgers"] for row in rows] == ["1 2", "3 4"]
    assert [link.attributes["href"] for link in rows[0].all("a")] == ["#ledger-2", "#ledger-1", "#ledger-2"]
    assert [row.first("th").first("a").text for row in rows] == ["plain", "defended"]
    tree = read((tmp_path / "page" / "report.html").read_text())
    assert "All are of family, with epochs=5." in tree.text
    assert len(list(tree.all("details", class_="ledger"))) == 4
    assert tree.text.count("This is one of 2 ledgers of the model") == 4


@pytest.mark.parametrize(
    ("names", "short", "common"),
    [
        (["f/a+x=1", "f/b+x=1"], ["a", "b"], ("f/", "+x=1")),
        (["f/a+x=1,2", "f/b+x=1,2"], ["a", "b"], ("f/", "+x=1,2")),
        (["f/a+x=1", "f/a+x=2"], ["a+x=1", "a+x=2"], ("f/", "")),
        (["f/a, seed 0", "f/a, seed 1 (paper)"], ["a, seed 0", "a, seed 1 (paper)"], ("f/", "")),
        (["f/a", "g/a"], ["f/a", "g/a"], ("", "")),
        (["f/", "f/b"], ["f/", "f/b"], ("f/", "")),
        (["f/a"], ["f/a"], ("", "")),
        (["a+x", "b+x"], ["a", "b"], ("", "+x")),
        ([], [], ("", "")),
    ],
)
def test_names_are_short_where_they_share_something(names, short, common):
    assert told_apart(names) == short
    assert in_common(names) == common
