"""Charts of one row a name: what each attack took, and two accuracies or a spread with its ends."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from linocut.report.charts.canvas import WIDTH, element, framed, line, shortened, text, ticks
from linocut.report.words import told_apart

NAMES, LONG_NAMES, RIGHT, ROW, TOP, BOTTOM = 150, 224, 40, 26, 8, 30


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A bar from one place to another, and what stands after it."""

    name: str
    look: str
    start: float
    end: float
    told: str


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A place with its ends (drawn thin) and, where given, its middle half (drawn thick)."""

    look: str
    at: float
    low: float
    high: float
    half: tuple[float, float] | None = None


def bar_chart(bars: Sequence[Bar], *, most: float, title: str, description: str) -> Markup:
    """Bars under each other over 0..most: a waterfall when each starts where the one above ended."""

    def x(value: float) -> float:
        return NAMES + (WIDTH - NAMES - RIGHT) * value / (most or 1)

    parts = []
    for number, bar in enumerate(bars):
        y = TOP + number * ROW
        start, end = sorted((x(bar.start), x(bar.end)))
        parts.append(text(NAMES - 8, y + 15, shortened(bar.name, 23), text_anchor="end", class_="name"))
        parts.append(element("rect", x=start, y=y + 3, width=max(1.5, end - start), height=ROW - 10, class_=bar.look))
        if number + 1 < len(bars):
            edge = x(bar.end)
            parts.append(line(edge, y + ROW - 7, edge, y + ROW + 3, class_="grid"))
        parts.append(text(end + 6, y + 15, bar.told, class_="tick"))
    return framed(parts, TOP + ROW * len(bars) + 4, title=title, description=description)


def dot_chart(
    rows: Sequence[tuple[str, Sequence[Dot]]],
    *,
    span: tuple[float, float],
    x_name: str,
    title: str,
    description: str,
    joined: bool = False,
) -> Markup:
    """One row a name with its dots over `span`; `joined` draws a line from the first dot to the last."""
    low, high = span
    bottom = TOP + ROW * len(rows)
    labels = told_apart([name for name, _ in rows])
    names = min(LONG_NAMES, max(NAMES, 16 + 6.4 * max(map(len, labels))))
    most = int((names - 12) / 6.4)

    def x(value: float) -> float:
        return names + (WIDTH - names - 18) * (value - low) / ((high - low) or 1)

    parts = []
    for value in ticks(low, high, 4):
        parts.append(line(x(value), TOP, x(value), bottom, class_="grid"))
        parts.append(text(x(value), bottom + 15, f"{value:g}", text_anchor="middle", class_="tick"))
    parts.append(text(names - 22, bottom + 15, x_name, text_anchor="end", class_="note"))
    for number, (name, (_, dots)) in enumerate(zip(labels, rows, strict=True)):
        y = TOP + number * ROW + ROW / 2
        parts.append(text(names - 8, y + 4, shortened(name, most), text_anchor="end", class_="name"))
        if joined and len(dots) > 1:
            parts.append(line(x(dots[0].at), y, x(dots[-1].at), y, class_="joint"))
        for place, dot in enumerate(dots):
            level = y + (place - (len(dots) - 1) / 2) * 7
            parts.append(line(x(dot.low), level, x(dot.high), level, class_=f"whisker interval {dot.look}"))
            if dot.half is not None:
                parts.append(line(x(dot.half[0]), level, x(dot.half[1]), level, class_=f"half {dot.look}"))
            parts.append(element("circle", cx=x(dot.at), cy=level, r=4.5, class_=f"dot {dot.look}"))
    return framed(parts, bottom + BOTTOM - 8, title=title, description=description)
