"""The page says what the record says, in one file, whatever lies in the ledgers."""

import csv
import json
import time
from pathlib import Path

import pytest
from pages import read
from report_cases import RADII, card, made_up, run_ledger

from linocut.evaluation.record import Record
from linocut.report import write


def figures(cell):
    """The numbers of a cell: accuracy, interval."""
    return cell.first("span", class_="number").text, cell.first("span", class_="interval").text


def written(share):
    low, high = share.interval
    return f"{share.percent:.2f}", f"{low:.2f} to {high:.2f}"


def test_the_table_equals_the_records(page, ledgers):
    table = read(page.read_text()).first("table", id="overview")
    for row, name in zip(table.first("tbody").all("tr"), ("plain", "defended"), strict=True):
        record = Record.read(ledgers / name)
        clean, *cells = [cell for cell in row.all("td") if any(cell.all("span", class_="number"))]
        assert row.first("th").text == name
        assert figures(clean) == written(record.clean)
        wanted = []
        for norm in RADII:
            wanted += [record.after(f"{norm}/pgd-published"), record.worst(norm)]
        assert [figures(cell) for cell in cells] == [written(share) for share in wanted]
        assert [float(cell.attributes["data-value"]) for cell in cells] == [share.percent for share in wanted]
        for norm, cell in zip(RADII, cells[1::2], strict=True):
            same = record.worst(norm, record.of[f"{norm}/pgd-published"])
            assert f"{same.percent:.2f} of these 20" in cell.text


def test_details_equal_the_records(page, ledgers):
    tree = read(page.read_text())
    for number, name in enumerate(("plain", "defended"), 1):
        record, detail = Record.read(ledgers / name), tree.first(id=f"ledger-{number}")
        lines = [[cell.text for cell in row.all() if cell.name in ("td", "th")] for row in _body(detail, "lines")]
        assert lines[0][1:] == ["clean", *written(record.clean), str(record.clean.n)]
        assert ["L∞ 0.03", "worst case", *written(record.worst("linf")), "24"] in lines
        assert ["L2 0.6", "worst case", *written(record.worst("l2")), "24"] in lines
        curves = [table for table in detail.all("table") if "over the radius" in table.first("caption").text]
        for table, norm in zip(curves, RADII, strict=True):
            shown = [[cell.text for cell in row.all()] for row in table.first("tbody").all("tr")]
            for row, factor in zip(shown[1:], (0.5, 1, 2), strict=True):
                share = record.after(f"{norm}/radius-{factor:g}")
                assert row == [f"{factor * RADII[norm]:.4g}", *written(share), str(share.n)]
        falls = [table for table in detail.all("table") if table.first("caption").text.startswith("Losses")]
        for table, norm in zip(falls, RADII, strict=True):
            rows = [[cell.text for cell in row.all()] for row in table.first("tbody").all("tr")]
            assert sum(int(row[1]) for row in rows) == record.clean.n - record.worst(norm).count
            assert int(rows[-1][2]) == record.worst(norm).count


def _body(detail, name):
    return detail.first("table", class_=name).first("tbody").all("tr")


def test_csv_equals_the_records(page, ledgers):
    with open(page.with_name("tables.csv"), newline="") as file:
        lines = list(csv.DictReader(file))
    for name in ("plain", "defended"):
        record = Record.read(ledgers / name)
        mine = [line for line in lines if line["model"] == f"test/{name}"]
        assert float(mine[0]["percent"]) == round(record.clean.percent, 4)
        for norm in RADII:
            (worst,) = [line for line in mine if (line["norm"], line["column"]) == (norm, "worst")]
            share = record.worst(norm)
            assert (int(worst["count"]), int(worst["n"])) == (share.count, share.n)
            assert (float(worst["low"]), float(worst["high"])) == share.interval
    for table in ("tables.md", "tables.tex"):
        assert f"{record.worst('l2').percent:.2f}" in page.with_name(table).read_text()


def test_the_page_is_one_file_and_the_same_every_time(page, ledgers, tmp_path):
    text = page.read_text()
    tree = read(text)
    addresses = [e.attributes[key] for e in tree.all() for key in ("src", "href") if key in e.attributes]
    assert addresses
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in addresses)
    assert not list(tree.all("link"))
    assert "@import" not in text
    assert "url(" not in text
    again = write([ledgers / "plain", ledgers / "defended"], tmp_path)
    assert again.read_text() == text


def test_the_gallery_shows_the_most_telling_first(page, ledgers):
    detail = read(page.read_text()).first(id="ledger-2")
    cards = list(detail.first("ul", class_="gallery").all("li"))
    order = ["survived the published attack", "broken as published", "broken in the worst case", "stands"]
    told = [list(card.all("p", class_="aside"))[-1].text for card in cards]
    ranks = [next(i for i, start in enumerate(order) if line.startswith(start)) for line in told]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) > 1
    captions = [caption.text.split(" ×")[0] for caption in cards[0].all("figcaption")]
    assert captions == ["natural", "change", "adversarial", "transformed"]
    assert "colour" in cards[0].first("p", class_="palette").text
    assert {"cat", "dog", "eel"} & {word for card in cards for word in card.first("p", class_="what").text.split()}


def test_every_section_is_there(page):
    headings = [e.text for e in read(page.read_text()).all() if e.name in ("h2", "h3")]
    for wanted in ("Results", "What to make of it", "Which attack broke how many", "Accuracy over the radius"):
        assert wanted in headings
    for wanted in ("Loss over the steps", "Gallery", "Figures", "How visible the attacks are"):
        assert wanted in headings
    for wanted in ("An L2 attack before and after the transform", "What the network was surest of, wrongly"):
        assert wanted in headings


def test_the_large_numbers_of_one_ledger_never_stand_alone(ledgers, tmp_path):
    record = Record.read(ledgers / "plain")
    scores = list(read(write([ledgers / "plain"], tmp_path).read_text()).first("dl", class_="scores").all("div"))
    shares = [record.clean]
    for norm in RADII:
        shares += [record.after(f"{norm}/pgd-published"), record.worst(norm)]
    for score, share in zip(scores, shares, strict=True):
        number, beside = (part.text for part in score.all("dd"))
        assert number == f"{share.percent:.1f} %"
        assert beside == f"{written(share)[1]}, n = {share.n}"


def test_a_ledger_of_one_norm(tmp_path):
    ledger = run_ledger(tmp_path / "one", defended=False, norms=("linf",), name="test/one")
    tree = read(write([ledger], tmp_path / "out").read_text())
    assert "L∞" in tree.text
    assert not list(tree.all(data_norm="l2"))
    assert not list(tree.all("select", id="norm")), "nothing to choose"


def test_an_unfinished_ledger_says_so(copied, tmp_path):
    ledger = copied("plain")
    rows = (ledger / "rows.jsonl").read_text().splitlines(keepends=True)
    (ledger / "parts" / "rank-0.jsonl").write_text("".join(rows[:30]))
    (ledger / "rows.jsonl").unlink()
    page = write([ledger], tmp_path / "out")
    text = read(page.read_text()).text
    assert "This run is unfinished" in text
    assert "Unfinished: 24 of 24 examples" in text
    assert f"at most {Record.read(ledger).worst('linf').percent:.1f} % hold in the worst case" in text
    assert "What to make of it" not in text
    assert "unfinished" in page.with_name("tables.csv").read_text()
    (ledger / "parts" / "rank-0.jsonl").unlink()
    assert "judged no example yet" in write([ledger], tmp_path / "out").read_text()


def test_a_ledger_without_figures(copied, tmp_path):
    ledger = copied("defended")
    (ledger / "figures").rename(tmp_path / "gone")
    text = read(write([ledger], tmp_path / "out").read_text()).text
    assert "keeps no figures" in text
    assert "Gallery" not in text


def test_the_paper_stands_beside_its_own_rows_only(tmp_path):
    both = {"linf": 60, "l2": 60}
    radii = {"linf": 8 / 255, "l2": 1.74}
    mine = made_up(
        tmp_path / "mine", published=both, worst=both, radii=radii, the_card=card("mine", "EssentialFeatures")
    )
    other = made_up(tmp_path / "other", published=both, worst=both, radii=radii | {"linf": 0.2}, the_card=None)
    tree = read(write([mine, other], tmp_path / "out").read_text())
    first, second = tree.first("table", id="overview").first("tbody").all("tr")
    assert [span.text for span in first.all("span", class_="paper")] == ["paper 84.52", "paper 51.97", "paper 38.46"]
    assert not list(second.all("span", class_="paper"))
    wider = made_up(
        tmp_path / "wider", published=both, worst=both, radii={"linf": 0.2, "l2": 1.74}, the_card=card("m", None)
    )
    text = read(write([wider, other], tmp_path / "out").read_text()).text
    assert "paper 85.43" in text
    assert "paper 51.72" not in text, "another radius than the paper's"


HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'{{ 7*7 }}</title>"


@pytest.mark.parametrize("size", [5_000_000, 92_000_000])
def test_the_network_is_named_and_whether_its_weights_are_published(tmp_path, size):
    folders = []
    for name, transform in (("plain", None), ("mine", "EssentialFeatures")):
        more = {"architecture": {"name": "wrn-34-10"}, "weights": {"bytes": size}}
        counts = {"published": {"linf": 50}, "worst": {"linf": 40}}
        folders.append(made_up(tmp_path / name, the_card=card(name, transform) | more, **counts))
    text = write(folders, tmp_path / "page").read_text()
    assert "The network is a wrn-34-10." in text
    assert ("Published results leave out those above 10 MB" in text) == (size > 10_000_000)


def test_hostile_strings_are_only_text(copied, tmp_path):
    ledger = copied("defended")
    header = json.loads((ledger / "header.json").read_text())
    header["settings"] |= {"model": HOSTILE, "data": HOSTILE, "suite": HOSTILE, "split": HOSTILE}
    header["settings"]["classes"] = [HOSTILE] * 3
    header["made_with"] |= {"machine": HOSTILE, "command": ["x", "evaluate", HOSTILE]}
    header["made_with"]["card"]["recipe"] |= {"recipe": HOSTILE, "method": HOSTILE}
    (ledger / "header.json").write_text(json.dumps(header))
    page = write([ledger], tmp_path / "out", title=HOSTILE)
    text = page.read_text()
    tree = read(text)
    assert len(list(tree.all("script"))) == 1
    assert "<script>alert" not in text
    assert all(image.attributes["src"].startswith("data:image/png") for image in tree.all("img"))
    assert not [e for e in tree.all() if any(key.startswith("on") for key in e.attributes)]
    assert HOSTILE in tree.first("title").text
    assert "49" not in tree.first("h1").text
    assert "<script>" not in page.with_name("tables.md").read_text().replace("\\<", "")


def test_other_models_and_old_ledgers_have_no_card(copied, tmp_path):
    ledger = copied("plain")
    header = json.loads((ledger / "header.json").read_text())
    for stored in (None, [], {"recipe": 3, "transform": "x"}, "absent"):
        if stored == "absent":
            del header["made_with"]["card"]
        else:
            header["made_with"]["card"] = stored
        (ledger / "header.json").write_text(json.dumps(header))
        assert "not known" in write([ledger], tmp_path / "out").read_text()


def test_two_hundred_ledgers(tmp_path):
    for i in range(200):
        stands = {"linf": i % 10, "l2": i % 5}
        made_up(tmp_path / "many" / f"{i:03d}", n=10, published=stands, worst=stands)
    start = time.monotonic()
    page = write([tmp_path / "many"], tmp_path / "out")
    took = time.monotonic() - start
    tree = read(page.read_text())
    assert len(list(tree.first("table", id="overview").first("tbody").all("tr"))) == 200
    assert len({row.first("th").text for row in tree.first("tbody").all("tr")}) == 200, "names differ"
    assert "leaves out their charts and pictures" in tree.text
    assert page.stat().st_size < 5_000_000
    assert took < 20


def test_order_is_the_order_of_folders(ledgers, tmp_path):
    tree = read(write([ledgers / "defended", ledgers / "plain"], tmp_path).read_text())
    assert [row.first("th").text for row in tree.first("tbody").all("tr")] == ["defended", "plain"]


@pytest.mark.parametrize("title", ["A title of mine", None])
def test_title(ledgers, tmp_path, title):
    tree = read(write([ledgers], tmp_path, title=title).read_text())
    assert tree.first("title").text == tree.first("h1").text == (title or "2 models on pictures")


@pytest.mark.parametrize("typed", [["demo", "--out", "d"], ["reproduce", "--out", "d"], ["evaluate", "m"], ["other"]])
def test_every_ledger_shows_what_repeats_it(copied, tmp_path, monkeypatch, typed):
    ledger = copied("plain")
    header = json.loads((ledger / "header.json").read_text())
    header["settings"]["model"] = "m odel"
    repeat = ["evaluate", "/models/m odel", "--data", "digits"]
    left_out = ["--json", "--minutes", "3"] if typed[0] == "reproduce" else []  # how it was run, not what it did
    header["made_with"] |= {"repeat": repeat, "command": ["linocut", *typed, *left_out]}
    (ledger / "header.json").write_text(json.dumps(header))
    monkeypatch.chdir(ledger.parent)  # the page may be read, and its commands typed, in another folder
    tree = read(write([Path(ledger.name)], tmp_path / "out").read_text())
    shown = [code.text for block in tree.all("pre") for code in block.all("code")]
    assert "linocut evaluate '/models/m odel' --data digits --out repeated" in shown
    assert f"linocut verify {ledger} --model '/models/m odel'" in shown
    assert ((" ".join(["linocut", *typed])) in shown) == (typed[0] in ("demo", "reproduce"))
