"""The page can be read by everybody: structure, names, contrast."""

import re
from itertools import pairwise

import pytest
from pages import read

from linocut.report import theme


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first, second):
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_measured_rightly():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("which", [0, 1], ids=["light", "dark"])
def test_letters_stand_out_in_both_themes(which):
    for text in theme.TEXT:
        for ground in theme.GROUNDS:
            found = contrast(theme.PALETTE[text][which], theme.PALETTE[ground][which])
            assert found >= 4.5, f"{text} on {ground}: {found:.2f}"
    for mark in ("clean", "published", "worst", "ok"):  # lines and bars of charts
        assert contrast(theme.PALETTE[mark][which], theme.PALETTE["paper"][which]) >= 3


def test_every_color_of_the_style_comes_from_the_palette(page):
    style = read(page.read_text()).first("style").text
    used = set(re.findall(r"var\(--(\w+)\)", style)) - {"look"}
    assert used <= set(theme.PALETTE)
    rules = re.sub(r"--\w+: #\w+;", "", style)
    assert set(re.findall(r"#[0-9a-f]{3,6}\b", rules)) == {"#fff", "#000"}, "the frame of a region alone"


def test_structure(page):
    tree = read(page.read_text())
    assert tree.first("html").attributes["lang"] == "en"
    assert tree.first("title").text
    assert len(list(tree.all("main"))) == len(list(tree.all("h1"))) == 1
    levels = [int(e.name[1]) for e in tree.all() if re.fullmatch(r"h[1-6]", e.name)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [e.attributes["id"] for e in tree.all() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    for link in tree.all("a"):
        assert link.attributes["href"][1:] in ids


def test_names(page):
    tree = read(page.read_text())
    assert all(image.attributes.get("alt") for image in tree.all("img"))
    for table in tree.all("table"):
        assert table.first("caption").text
        assert all(head.attributes.get("scope") in ("col", "row") for head in table.all("th"))
    labelled = [
        control for label in tree.all("label") for control in label.all() if control.name in ("select", "input")
    ]
    assert len(labelled) == len([c for c in tree.all() if c.name in ("select", "input")]) >= 5
    charts = list(tree.all("svg"))
    assert len(charts) >= 10
    for chart in charts:
        assert chart.attributes["role"] == "img"
        assert chart.first("title").text
        assert chart.first("desc").text


def test_focus_is_visible_and_text_is_not_color_alone(page):
    tree = read(page.read_text())
    assert ":focus-visible { outline: 3px" in tree.first("style").text
    assert all(re.sub(r"\W", "", badge.text) for badge in tree.all("span", class_="badge"))
