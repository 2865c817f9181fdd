"""A chart of lines over a number: accuracy over the radius, loss over the steps."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from linocut.report.charts.canvas import WIDTH, element, framed, line, path, text, ticks

LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 44, 14, 30, 42, 260


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line: its points with lower and upper ends, and the class that colours it. `dots` shows whiskers."""

    name: str
    look: str
    points: Sequence[tuple[float, float, float, float]]  # x, y, low, high
    dots: bool = False


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    description: str,
    x_name: str,
    y_name: str,
    y_range: tuple[float, float],
    mark: tuple[float, str] | None = None,
) -> Markup:
    """The chart; `mark` is a place on the x axis with its name."""
    right = max(x for one in series for x, *_ in one.points) or 1.0
    low, high = y_range
    span = (high - low) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (WIDTH - LEFT - RIGHT) * x / right,
            HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - low) / span,
        )

    parts = _axes(at, right, y_range, x_name, y_name)
    if mark is not None and mark[0] <= right:
        x, floor = at(mark[0], low)
        parts.append(line(x, TOP, x, floor, class_="mark"))
        anchor = "end" if x > WIDTH / 2 else "start"
        parts.append(text(x + (-5 if anchor == "end" else 5), TOP + 10, mark[1], text_anchor=anchor, class_="note"))
    for one in series:
        parts.extend(_drawn(one, at))
    return framed(parts, HEIGHT, title=title, description=description)


def _axes(at, right: float, y_range: tuple[float, float], x_name: str, y_name: str) -> list[Markup]:
    low, high = y_range
    parts = []
    for value in ticks(low, high):
        x, y = at(0, value)
        parts.append(line(x, y, WIDTH - RIGHT, y, class_="grid"))
        parts.append(text(x - 7, y + 4, f"{value:g}", text_anchor="end", class_="tick"))
    for value in ticks(0, right):
        x, y = at(value, low)
        parts.append(line(x, y, x, y + 4, class_="axis"))
        parts.append(text(x, y + 18, f"{value:g}", text_anchor="middle", class_="tick"))
    x, y = at(0, low)
    parts.append(line(x, y, WIDTH - RIGHT, y, class_="axis"))
    parts.append(text(WIDTH - RIGHT, HEIGHT - 6, x_name, text_anchor="end", class_="note"))
    parts.append(text(2, 14, y_name, class_="note"))
    return parts


def _drawn(one: Series, at) -> list[Markup]:
    parts = []
    if one.dots:
        for x, _, low, high in one.points:
            (across, bottom), (_, top) = at(x, low), at(x, high)
            parts.append(line(across, bottom, across, top, class_=f"whisker interval {one.look}"))
    else:
        around = [at(x, high) for x, _, _, high in one.points] + [at(x, low) for x, _, low, _ in reversed(one.points)]
        parts.append(path(around, class_=f"band interval {one.look}"))
    parts.append(path([at(x, y) for x, y, *_ in one.points], class_=f"line {one.look}"))
    if one.dots:
        for x, y, *_ in one.points:
            across, up = at(x, y)
            parts.append(element("circle", cx=across, cy=up, r=3.5, class_=f"dot {one.look}"))
    return parts
