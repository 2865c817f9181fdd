"""SVG elements with everything escaped, and a frame that tells its content to those who cannot see it."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

WIDTH = 420  # one chart's width in its own units: about the width of a telephone, so that letters stay readable


def element(name: str, content: str = "", **attributes: Any) -> Markup:
    """An element; a trailing underscore in an attribute's name is dropped, others become hyphens."""
    told = Markup("").join(
        Markup(' {}="{}"').format(Markup(key.rstrip("_").replace("_", "-")), _plain(value))
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), told, content)


def text(x: float, y: float, content: str, **attributes: Any) -> Markup:
    return element("text", content, x=x, y=y, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: Any) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def path(points: Iterable[tuple[float, float]], **attributes: Any) -> Markup:
    """A line through these points; with class "band" and the way back among them it is an area."""
    d = " ".join(f"{'M' if i == 0 else 'L'}{_plain(x)} {_plain(y)}" for i, (x, y) in enumerate(points))
    return element("path", d=d, **attributes)


def framed(parts: Sequence[Markup], height: float, *, title: str, description: str) -> Markup:
    """The whole SVG with its title and description."""
    told = element("title", title) + element("desc", description)
    return element(
        "svg",
        told + Markup("").join(parts),
        viewBox=f"0 0 {WIDTH} {_plain(height)}",
        role="img",
        aria_label=f"{title}. {description}",
    )


def shortened(name: str, most: int) -> str:
    """The name, or its end after an ellipsis: what tells recipes apart stands at the end."""
    return name if len(name) <= most else "…" + name[-(most - 1) :]


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about so many."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _plain(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else escape(str(value))
