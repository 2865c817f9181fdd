"""The picture of published accuracies and worst cases: its dots lie where the numbers say."""

import itertools
from xml.etree import ElementTree

import pytest

from linocut.report import theme
from linocut.report.charts.pairs import PANEL, Fall, falls_chart

SVG = "{http://www.w3.org/2000/svg}"
GROUPS = [
    (
        "one set",
        [("no transform", {"linf": Fall(published=50, worst=25, n=2000), "l2": Fall(published=10, worst=0, n=2000)})],
    ),
    ("another", [("A < B & C", {"l2": Fall(published=63.15, worst=5.625, n=781)})]),
]


def drawn(groups=GROUPS):
    return ElementTree.fromstring(falls_chart(groups, title="a title"))


def dots(svg, look):
    return [
        (float(dot.get("cx")), float(dot.get("cy"))) for dot in svg.iter(f"{SVG}circle") if dot.get("class") == look
    ]


def words(svg):
    return ["".join(each.itertext()) for each in svg.iter(f"{SVG}text")]


def test_dots_lie_where_the_numbers_say():
    svg = drawn()
    published, worst = (dots(svg, look)[1:] for look in ("published", "worst"))  # the first is the legend's
    assert len(published) == len(worst) == 3
    apart = [one - other for (one, _), (other, _) in zip(published, worst, strict=True)]
    assert apart == pytest.approx([PANEL * share for share in (0.25, 0.10, 0.57525)], abs=0.02)
    assert [y for _, y in published] == [y for _, y in worst]
    linf, l2, below = published
    assert linf[1] == l2[1] < below[1]
    assert l2[0] - PANEL * 0.10 == pytest.approx(below[0] - PANEL * 0.6315, abs=0.02)  # one scale for a norm


def test_figures_are_rounded_as_a_reader_would_and_names_are_escaped():
    told = words(drawn())
    assert {"50.0 → 25.00", "10.0 → 0.00", "63.2 → 5.6", "A < B & C"} <= set(told)


def test_a_norm_that_no_row_has_takes_no_room():
    both, one = drawn(), drawn(GROUPS[1:])
    assert "L∞" in words(both)
    assert "L∞" not in words(one)
    assert int(one.get("width")) < int(both.get("width"))


def test_long_names_have_room_before_the_dots():
    names = ["ATTA", "natural training + fixed codebook, retrained", "ATTA + AC, retrained" + ", epochs=50" * 9]
    for name in names:
        svg = drawn([("one set", [(name, {"linf": Fall(published=1, worst=0, n=100)})])])
        [label] = [each for each in svg.iter(f"{SVG}text") if each.text and each.text.endswith(name[-20:])]
        assert float(label.get("x")) + 7 * len(label.text) < min(x for x, _ in dots(svg, "worst")[1:]) - 5


def test_lines_stand_apart_and_figures_beside_the_dots():
    svg = drawn()
    heights = sorted({y for _, y in dots(svg, "published")[1:]})
    assert min(below - above for above, below in itertools.pairwise(heights)) >= 22
    figures = [each for each in svg.iter(f"{SVG}text") if each.text and "→" in each.text]
    assert len(figures) == 3
    for each, (x, y) in zip(figures, dots(svg, "published")[1:], strict=True):
        assert abs(float(each.get("y")) - y) < 6
        assert each.get("text-anchor") == "end"
        assert float(each.get("x")) - 7 * len(each.text) > x


def test_a_line_joins_the_two_dots():
    svg = drawn()
    joints = [each for each in svg.iter(f"{SVG}line") if each.get("class") == "joint"]
    ends = [tuple(float(each.get(name)) for name in ("x1", "y1", "x2", "y2")) for each in joints]
    worst, published = (dots(svg, look)[1:] for look in ("worst", "published"))
    assert ends == [(*one, *other) for one, other in zip(worst, published, strict=True)]


def test_everything_lies_inside_the_picture():
    svg = drawn([*GROUPS, ("a heading, " + "longer and " * 12, [])])
    width, height = (int(svg.get(side)) for side in ("width", "height"))
    for each in svg.iter(f"{SVG}text"):
        assert 0 <= float(each.get("x")) <= width
        assert 0 <= float(each.get("y")) <= height
        if each.get("text-anchor") is None:
            assert float(each.get("x")) + 7 * len(each.text) <= width


def test_without_rows_it_is_still_a_picture():
    assert dots(drawn([]), "worst")


def test_its_colours_need_no_variables_of_css():
    """Which librsvg and others do not know: the whole picture would be black."""
    told = falls_chart(GROUPS, title="a title")
    assert "var(" not in told
    light, _, dark = told.partition("prefers-color-scheme: dark")
    for name in ("paper", "ink", "quiet", "rule", "published", "worst"):
        assert theme.PALETTE[name][0] in light
        assert theme.PALETTE[name][1] in dark
        assert name.upper() not in told
