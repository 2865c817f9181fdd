"""SSIM, waterfall, tables, pictures and charts, each where the answer is known."""

import csv
import io
from xml.etree import ElementTree

import cv2
import numpy as np
import pytest
import torch
from report_cases import card, made_up

from linocut.evaluation.record import Record
from linocut.report import tables
from linocut.report.charts.canvas import framed, shortened, text, ticks
from linocut.report.identity import paper_figure
from linocut.report.perceptibility import likenesses, paper_mean
from linocut.report.pictures import hottest_window, magnified
from linocut.report.sidecar import Sidecar
from linocut.report.sources import read_all
from linocut.report.ssim import ssim
from linocut.report.waterfall import falls, took_nobody


def images(count=3, channels=3, height=20, width=17):
    dice = torch.Generator().manual_seed(1)
    first = torch.rand(count, channels, height, width, generator=dice)
    return first, (first + 0.2 * torch.rand(first.shape, generator=dice)).clamp(0, 1)


@pytest.mark.parametrize("channels", [1, 3])
def test_ssim_is_its_formula_with_the_window_of_opencv(channels):
    first, second = (pair.double().numpy() for pair in images(channels=channels))

    def smooth(image):
        return cv2.GaussianBlur(image, (11, 11), 1.5)[5:-5, 5:-5]

    for one, other, mine in zip(first, second, ssim(*images(channels=channels)), strict=True):
        values = []
        for x, y in zip(one, other, strict=True):
            mean, over = smooth(x), smooth(y)
            spread = smooth((x - x.mean()) ** 2) - (mean - x.mean()) ** 2  # moments about another point, another sum
            wide = smooth((y - y.mean()) ** 2) - (over - y.mean()) ** 2
            both = smooth((x - x.mean()) * (y - y.mean())) - (mean - x.mean()) * (over - y.mean())
            top = (2 * mean * over + 0.0001) * (2 * both + 0.0009)
            values.append(top / ((mean**2 + over**2 + 0.0001) * (spread + wide + 0.0009)))
        assert float(mine) == pytest.approx(float(np.mean(values)), abs=1e-9)


def test_ssim_of_equal_and_of_small_images():
    for side in (1, 2, 8, 11):
        first, second = images(height=side, width=side)
        assert torch.allclose(ssim(first, first), torch.ones(3, dtype=torch.float64))
        assert bool((ssim(first, second) < 1).all())


def test_likeness_is_of_the_broken_images(ledgers):
    (subject,) = read_all([ledgers / "defended"])
    for likeness in likenesses(subject, Sidecar(subject.folder)):
        rows = subject.record.of[f"{likeness.norm}/pgd-published"].values()
        assert set(likeness.by_example) == {row.example for row in rows if row.broken}
        assert 0 < likeness.mean < 1


def test_the_papers_ssim_belongs_to_its_two_models(tmp_path):
    counts = {"published": {"linf": 1}, "worst": {"linf": 1}}
    both = "EssentialFeatures"
    for name, transform in (("none", None), ("both", both), ("blur", "AdaptiveBlur"), ("both@order=bins", both)):
        made_up(tmp_path / name, **counts, the_card=card(name, transform))
    subjects = read_all([tmp_path])
    found = {subject.name: paper_mean(subject.identity) for subject in subjects}
    assert found == {"none": 0.946, "both": 0.944, "blur": None, "both@order=bins": None}
    assert [subject.name for subject in subjects if subject.identity.paper is None] == ["both@order=bins"]


def test_fixed_codebooks_stand_beside_the_attack_the_paper_used(tmp_path):
    counts = {"published": {"linf": 1}, "worst": {"linf": 1}, "radii": {"linf": 8 / 255}}
    made_up(tmp_path / "x", **counts, the_card=card("x", "FixedCodebook"))
    (subject,) = read_all([tmp_path])
    ask = [paper_figure(subject.identity, subject.record, "linf", f"{a}-published") for a in ("chen", "pgd", "square")]
    assert ask == [53.18, None, 50.0]


def test_each_loss_counts_for_the_first_attack(tmp_path):
    ledger = made_up(tmp_path / "x", n=100, wrong=10, published={"linf": 60}, worst={"linf": 55})
    record = Record.read(ledger)
    told = [(fall.name, fall.lost, fall.standing) for fall in falls(record, "linf")]
    assert told == [("wrong at first", 10, 90), ("pgd-published", 30, 60), ("pgd-margin", 5, 55)]
    assert took_nobody(record, "linf") == []


def test_tables_escape_what_a_name_may_hold(tmp_path):
    name = "=1+1|a_b&c\n<d>"
    counts = {"published": {"linf": 50}, "worst": {"linf": 25}}
    made_up(tmp_path / "x", **counts, the_card=card(name, None))
    subjects = read_all([tmp_path])
    line = next(csv.DictReader(io.StringIO(tables.as_csv(subjects))))
    assert line["model"] == "'" + name
    markdown = tables.as_markdown(subjects).splitlines()
    assert markdown[2].startswith(r"| =1+1\|a\_b&c \<d\> |")
    assert {row.replace(r"\|", "").count("|") for row in markdown} == {9}
    latex = tables.as_latex(subjects)
    assert r"=1+1|a\_b\&c <d>" in latex
    assert r"L$_\infty$ 0.03" in latex
    assert r"25.00 & 16.88--34.66 & 100" in latex


def test_magnified_stays_in_range_and_says_how_much():
    natural = torch.full((1, 4, 4), 0.5)
    for size, wanted in ((0.031, 10), (0.3, 1), (0.9, 1), (0.0, 100)):
        change, factor = magnified(natural, natural + size)
        assert factor == wanted
        assert torch.allclose(change, 0.5 + factor * torch.full((1, 4, 4), size))


def test_the_hottest_window_holds_the_change():
    change = torch.zeros(3, 10, 12)
    change[1, 5, 7] = 1
    top, left = hottest_window(change, 3)
    assert top <= 5 < top + 3
    assert left <= 7 < left + 3


def test_charts_are_xml_with_everything_escaped():
    drawn = framed([text(1, 2, "<b>&")], 10, title='"<script>', description="a & b")
    tree = ElementTree.fromstring(str(drawn))
    assert tree.attrib["role"] == "img"
    assert tree.attrib["aria-label"] == '"<script>. a & b'
    assert [element.text for element in tree] == ['"<script>', "a & b", "<b>&"]


@pytest.mark.parametrize(("low", "high"), [(0, 100), (0, 0.031), (0, 8.4), (0.55, 1), (-1, 1), (3, 3)])
def test_ticks_are_few_and_inside(low, high):
    found = ticks(low, high)
    assert 1 <= len(found) <= 8
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in found)


def test_shortened_keeps_the_end():
    assert shortened("paper/cifar-10/acab-retrained", 14) == "…cab-retrained"
    assert shortened("short", 14) == "short"
