"""A picture of its own: from the published accuracy down to the worst case, a line a row, both norms side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from linocut.evaluation.record import Share
from linocut.report import theme
from linocut.report.charts.canvas import element, line, shortened, text
from linocut.report.words import NORMS, rounded

PANEL, TOLD, GAP = 180, 100, 12  # widths: one norm's dots, their figures, between norms
LETTER, BOLD = 7.2, 8.0  # the width of one at 13 pixels, and of a heading's
LETTERS = 30, 64  # the fewest and the most that a name has room for
ROW, TITLE, TOP, BOTTOM = 22, 32, 46, 30
INSET, INDENT = 8, 20
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"
_SHAPES = f"""
text {{ font: 13px {_FONT}; }}
.title {{ font-weight: 600; paint-order: stroke; stroke-width: 5px; stroke-linejoin: round; }}
.quiet {{ font-size: 12px; }}
.joint {{ stroke-width: 2; opacity: .45; }}
"""
# Colours by name and not by CSS variables, which much software that draws SVG files does not know.
_COLORS = """
text { fill: INK; }
text.title { stroke: PAPER; }
text.quiet { fill: QUIET; }
.grid { stroke: RULE; }
.joint { stroke: QUIET; }
.published { fill: PUBLISHED; }
.worst { fill: WORST; }
.ground { fill: PAPER; }
"""


@dataclass(frozen=True, kw_only=True)
class Fall:
    """Two accuracies in per cent of one row and norm; n: of how many images the worst case is."""

    published: float
    worst: float
    n: int

    @property
    def told(self) -> str:
        return f"{rounded(self.published, 1)} → {rounded(self.worst, Share(0, self.n).decimals)}"


Rows = Sequence[tuple[str, Mapping[str, Fall]]]  # a row's name, and by norm what it fell to


def falls_chart(groups: Sequence[tuple[str, Rows]], *, title: str) -> str:
    """A whole SVG file. Each group of rows stands under its own heading; a row may lack a norm.

    Its colours follow the reader's light or dark setting, as those of the page do.
    """
    norms = [norm for norm in NORMS if any(norm in falls for _, rows in groups for _, falls in rows)]
    longest = max((len(name) for _, rows in groups for name, _ in rows), default=0)
    letters = min(max(longest, LETTERS[0]), LETTERS[1])
    names = round(INDENT + letters * LETTER) + 20
    width = names + len(norms) * (PANEL + TOLD) + (len(norms) - 1) * GAP + 2 * INSET
    width = max(width, 2 * INSET + max((round(len(heading) * BOLD) for heading, _ in groups), default=0))
    bottom = TOP + sum(TITLE + ROW * len(rows) for _, rows in groups)
    lefts = {norm: names + INSET + number * (PANEL + TOLD + GAP) for number, norm in enumerate(norms)}
    parts = [_style(), element("rect", width=width, height=bottom + BOTTOM, class_="ground"), _legend()]
    for norm, left in lefts.items():
        parts.append(text(left + PANEL / 2, TOP - 6, NORMS[norm], text_anchor="middle", class_="title"))
        for value in (0, 25, 50, 75, 100):
            x = left + PANEL * value / 100
            parts.append(line(x, TOP, x, bottom + 4, class_="grid"))
            parts.append(text(x, bottom + 20, str(value), text_anchor="middle", class_="quiet"))
    parts.append(text(names - 8, bottom + 20, "per cent that hold, mean over seeds", text_anchor="end", class_="quiet"))
    y = TOP
    for heading, rows in groups:
        parts.append(text(INSET, y + TITLE - 10, heading, class_="title"))
        y += TITLE
        for name, falls in rows:
            parts.append(text(INDENT, y + 15, shortened(name, letters)))
            parts += [_fall(fall, lefts[norm], y + ROW / 2) for norm, fall in falls.items()]
            y += ROW
    told = (
        f"{title}: per cent of test images that hold, as published and in the worst case, means over seeds. "
        "The worst case may be of fewer images."
    )
    svg = element(
        "svg",
        element("title", title) + element("desc", told) + Markup("").join(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {bottom + BOTTOM}",
        width=width,
        height=bottom + BOTTOM,
        role="img",
        aria_label=told,
    )
    return f"{svg}\n"


def _fall(fall: Fall, left: float, y: float) -> Markup:
    published, worst = (left + PANEL * value / 100 for value in (fall.published, fall.worst))
    return (
        line(worst, y, published, y, class_="joint")
        + element("circle", cx=published, cy=y, r=5, class_="published")
        + element("circle", cx=worst, cy=y, r=5, class_="worst")
        + text(left + PANEL + TOLD - 4, y + 4, fall.told, text_anchor="end", class_="quiet")
    )


def _legend() -> Markup:
    parts = Markup("")
    for x, look, told in ((INSET + 6, "published", "as published"), (INSET + 108, "worst", "worst case")):
        parts += element("circle", cx=x, cy=20, r=5, class_=look) + text(x + 10, 24, told)
    return parts


def _style() -> Markup:
    dark = f"@media (prefers-color-scheme: dark) {{ {_colors(1)} }}"
    return element("style", Markup(f"{_SHAPES} {_colors(0)} {dark}"))


def _colors(which: int) -> str:
    """The rules of a theme (0 light, 1 dark)."""
    told = _COLORS
    for name, themes in theme.PALETTE.items():
        told = told.replace(name.upper(), themes[which])
    return told
