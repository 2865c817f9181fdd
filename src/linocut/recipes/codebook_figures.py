"""Two figures: what a codebook holds, and what fixed and adaptive codebooks trade."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linocut.data.images import read_image
from linocut.recipes.codebook_compare import Mean, Measure, curve
from linocut.recipes.figures import new_figure
from linocut.transform.fixed import separations
from linocut.transform.modules import AdaptiveCodebook, FixedCodebook

BLUE, ORANGE, GREY, INK = "#2f6fae", "#d9822b", "#8a8a8a", "#26221e"
TINT, _TINT_RGB = "#dce4e8", np.array([0xDC, 0xE4, 0xE8]) / 255  # neither black nor white vanishes in it
KINDS = (
    ("adaptive", BLUE, "adaptive: eps in levels, colours of each picture's own"),
    ("fixed", ORANGE, "fixed: k colours for all pictures"),
    ("depth", GREY, "colour depth: levels of each channel"),
)
MOST_LABELLED = 40
MOST_IN_TABLE = 12


# ------------------------------------------------------------------------------------------- the palette


def palette_figure(book: FixedCodebook, title: str) -> Any:
    """Every code as a swatch, how much of the data each paints, and the distances between all of them."""
    levels = np.array(book.settings()["colors"])
    population = (book.settings()["origin"] or {}).get("population")
    rows = -(-len(levels) // _columns(len(levels)))
    height = 0.7 + 0.23 * rows
    figure = new_figure(11, 4 + height)
    figure.suptitle(title, fontsize=11, color=INK, parse_math=False)  # file names may hold $
    top, bottom = figure.subfigures(2, 1, height_ratios=(height, 4))
    _swatches(top.subplots(), levels)
    left, right = bottom.subplots(1, 2, width_ratios=(1.35, 1))
    _shares(left, levels, population)
    _distances(right, levels)
    return figure


def _rgb(levels: np.ndarray) -> np.ndarray:
    return np.broadcast_to(levels, (len(levels), 3)) / 255


def _columns(count: int) -> int:
    return 30 if count > 120 else min(count, 20)


def _swatches(axes: Any, levels: np.ndarray) -> None:
    columns = _columns(len(levels))
    rows = -(-len(levels) // columns)
    sheet = np.tile(_TINT_RGB, (rows * columns, 1))
    sheet[: len(levels)] = _rgb(levels)
    axes.imshow(sheet.reshape(rows, columns, 3), aspect="auto", interpolation="nearest")
    axes.set_xticks(np.arange(columns + 1) - 0.5, labels=[])
    axes.set_yticks(np.arange(rows + 1) - 0.5, labels=[])
    axes.grid(color=TINT, lw=2)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_color(TINT)
    if len(levels) <= MOST_LABELLED:
        for i, color in enumerate(levels):
            name = str(color[0]) if len(color) == 1 else "#" + "".join(f"{v:02x}" for v in color)
            ink = "black" if color.mean() > 127 else "white"
            axes.text(i % columns, i // columns, name, ha="center", va="center", color=ink, fontsize=8)
    axes.set_title(f"{len(levels)} codes in the order they were taken", fontsize=9, loc="left")


def _shares(axes: Any, levels: np.ndarray, population: list[int] | None) -> None:
    if not population:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "made without data: no populations", ha="center", color=GREY)
        return
    share = 100 * np.array(population) / sum(population)
    order = np.argsort(-share, kind="stable")
    axes.bar(np.arange(len(share)), share[order], width=1 if len(share) > 60 else 0.85, color=_rgb(levels[order]))
    axes.set_facecolor(TINT)
    axes.margins(x=0.01)
    axes.set_title("training pixels that each code paints, largest first", fontsize=9, loc="left")
    axes.set_ylabel("% of pixels")
    axes.set_xlabel("codes")
    axes.set_xticks([])


def _distances(axes: Any, levels: np.ndarray) -> None:
    """A table of distances for a few codes; for many, how they are spread."""
    if len(levels) == 1:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "a single code", ha="center", color=GREY)
        return
    gap = np.abs(levels[:, None] - levels[None]).max(axis=2)
    axes.set_title(
        f"L-infinity distance of codes: at least {separations(levels).min():.0f} levels", fontsize=9, loc="left"
    )
    if len(levels) <= MOST_IN_TABLE:
        axes.imshow(gap, cmap="Blues", vmin=0, vmax=400, interpolation="nearest")  # pale enough for black numbers
        for i, j in np.ndindex(gap.shape):
            axes.text(j, i, str(gap[i, j]), ha="center", va="center", fontsize=8, color=INK)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    edges = np.arange(0, 257, 4)
    pairs = gap[np.triu_indices(len(gap), 1)]
    for values, paint, label in ((pairs, GREY, "all pairs"), (separations(levels), ORANGE, "to the nearest other")):
        weights = np.full(len(values), 100 / len(values))
        axes.hist(values, bins=edges, weights=weights, color=paint, alpha=0.75, label=label)
    axes.set_xlabel("levels")
    axes.set_ylabel("%")
    axes.set_xlim(0, 256)
    axes.legend(fontsize=8)


# ----------------------------------------------------------------------------------------- the trade-off


def tradeoff_figure(measures: Sequence[Measure], eps: float, book: FixedCodebook) -> Any:
    """Error against two measures of separability for all codebooks, and one picture painted by both kinds."""
    figure = new_figure(13, 7.6)
    count = len({m.picture for m in measures})
    title = f"Representation against separability, mean over {count} picture{'s' * (count > 1)}"
    figure.suptitle(title, fontsize=11, color=INK)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.75, 1))
    left, right = top.subplots(1, 2, sharey=True)
    for kind, paint, label in KINDS:
        rows = curve(measures, kind)
        error = [row.rmse for row in rows]
        for axes, x in ((left, [_apart(row) for row in rows]), (right, [100 * row.movable for row in rows])):
            axes.plot(x, error, "o-", color=paint, label=label, ms=5)
    left.set_xscale("log", base=2)
    left.xaxis.set_major_formatter("{x:g}")
    left.set_xlabel("smallest L-infinity distance of two colours in a picture, levels")
    left.set_ylabel("RMSE against the picture, levels")
    # Here great errors go with few movable pixels, so this corner is empty; on the left no corner is.
    right.legend(fontsize=8, loc="upper right", title="number on the curve", title_fontsize=8)
    right.set_xlabel(f"pixels that a change of {255 * eps:g} levels can send to another colour, %")
    right.set_xlim(left=0)
    left.set_ylim(bottom=0)
    for axes, at, start in ((left, (0.97, 0.03), (0.84, 0.14)), (right, (0.03, 0.03), (0.11, 0.14))):
        axes.grid(alpha=0.3)
        axes.annotate(
            "better", at, xytext=start, xycoords="axes fraction", color=INK,
            arrowprops={"arrowstyle": "->", "color": INK},
        )  # fmt: skip
    _label_points(left, measures, _apart)
    _label_points(right, measures, lambda row: 100 * row.movable)
    _example(bottom, measures, eps, book)
    return figure


def _apart(row: Mean) -> float:
    return np.nan if row.separation is None else row.separation  # a point that is not drawn


def _label_points(axes: Any, measures: Sequence[Measure], x_of: Callable[[Mean], float]) -> None:
    """The setting beside each point, but for points that crowd one that has its label; ends of curves come first."""
    to_axes = axes.transData + axes.transAxes.inverted()
    labelled: list[np.ndarray] = []
    for kind, paint, _ in KINDS:
        rows = curve(measures, kind)
        for row in (rows[0], *reversed(rows[1:])):
            place = to_axes.transform((x_of(row), row.rmse))
            if not np.isfinite(place).all() or any(np.abs(place - other).max() < 0.035 for other in labelled):
                continue
            labelled.append(place)
            axes.annotate(
                f"{row.setting:g}", (x_of(row), row.rmse), xytext=(5, -11 if kind == "adaptive" else 4),
                textcoords="offset points", fontsize=8, color=paint,
            )  # fmt: skip


def _example(figure: Any, measures: Sequence[Measure], eps: float, book: FixedCodebook) -> None:
    """The picture whose adaptive error is the median, as it is and under both kinds at like numbers of colours."""
    own = sorted((m for m in measures if m.kind == "adaptive" and m.setting == 255 * eps), key=lambda m: m.rmse)
    chosen = own[len(own) // 2]
    rivals = [m for m in measures if m.kind == "fixed" and m.picture == chosen.picture]
    rival = min(rivals, key=lambda m: abs(m.num_colors - chosen.num_colors))
    pixels = read_image(chosen.picture)[0]
    natural = pixels.expand(max(len(pixels), book.codes.shape[1]), -1, -1)[None].float() / 255
    fixed = FixedCodebook(colors=book.settings()["colors"][: int(rival.setting)])
    panels = [
        (natural, "a picture of median error"),
        (AdaptiveCodebook(eps=eps)(natural), f"adaptive, eps {255 * eps:g}: {_told(chosen)}"),
        (fixed(natural), f"fixed, k {rival.setting:g}: {_told(rival)}"),
    ]
    for axes, (image, title) in zip(figure.subplots(1, 3), panels, strict=True):
        axes.imshow(image[0].expand(3, -1, -1).permute(1, 2, 0).numpy(), interpolation="nearest")
        axes.set_title(title, fontsize=8)
        axes.set_axis_off()


def _told(m: Measure) -> str:
    apart = "-" if m.separation is None else f"{m.separation:.0f}"
    return f"{m.num_colors} colours, RMSE {m.rmse:.1f}, distance {apart}, movable {100 * m.movable:.0f} %"
