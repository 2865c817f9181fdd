"""One picture that shows what the transform did to an image, drawn with Pillow alone."""

from typing import Any

import torch
from PIL import Image, ImageDraw, ImageFont

from linocut.recipes.file_plan import as_one_line
from linocut.recipes.pictures import (
    FAINT,
    INK,
    PAPER,
    as_picture,
    color_bytes,
    count_colors,
    darkest,
    edge_picture,
    fit,
    kernel_colors,
    kernel_picture,
    palette_strip,
)
from linocut.transform.apply import as_levels
from linocut.transform.explain import Explanation

CELL, GAP, MARGIN = 380, 36, 44
HEAD, CAPTION, TITLE, STRIP = 34, 60, 64, 40
MOST_BARS = 24


def panel(explanation: Explanation, settings: dict[str, Any], name: str) -> Image.Image:
    """Input, edges, kernel choice; blurred, palette, output; and all colours as one strip below."""
    assert explanation.palette is not None, "only transforms with a codebook are drawn"
    assert explanation.population is not None
    sizes, thresholds = settings["kernel_sizes"], settings["edge_thresholds"]
    height, width = explanation.output.shape[1:]
    count = len(explanation.palette)
    pictures = [fit(picture, CELL) for picture in _steps(explanation, len(sizes), thresholds)]
    tall = max(picture.height for picture in pictures)
    cells = [
        ("1  Input", f"{width} x {height} pixels, {count_colors(as_levels(explanation.input)):,} colours"),
        ("2  Edges", f"Sobel response, black from {darkest(thresholds):g} levels on"),
        ("3  Kernel choice", ""),
        ("4  Blurred", "each pixel and channel by its own kernel"),
        ("5  Palette", "share of the thumbnail in each kept cluster"),
        ("6  Output", f"{count} colour{'s' * (count != 1)}: each pixel takes the nearest"),
    ]
    row = HEAD + max(tall, 180) + CAPTION
    sheet = Image.new("RGB", (2 * MARGIN + 3 * CELL + 2 * GAP, 2 * MARGIN + TITLE + 2 * row + GAP + STRIP), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((MARGIN, MARGIN), _shorten(draw, as_one_line(name), 3 * CELL), font=_font(30), fill=INK)
    for i, (title, caption) in enumerate(cells):
        left = MARGIN + (i % 3) * (CELL + GAP)
        top = MARGIN + TITLE + (i // 3) * row
        draw.text((left, top), title, font=_font(20), fill=INK)
        caption_at = (left, top + HEAD + max(tall, 180) + 10)
        draw.text(caption_at, caption, font=_font(16), fill=FAINT)
        if title.endswith("choice"):
            _draw_legend(draw, caption_at, sizes)
        if title.endswith("Palette"):
            _draw_bars(
                draw, (left, top + HEAD), max(tall, 180), explanation, _thumbnail_pixels(height, width, settings)
            )
        else:
            picture = pictures[i if i < 4 else 4]
            sheet.paste(picture, (left, top + HEAD))
            if title.endswith("Edges"):
                box = (left, top + HEAD, left + picture.width - 1, top + HEAD + picture.height - 1)
                draw.rectangle(box, outline=(214, 206, 190))
    top = MARGIN + TITLE + 2 * row + GAP - 10
    sheet.paste(palette_strip(explanation.palette, explanation.population, (3 * CELL + 2 * GAP, 28)), (MARGIN, top))
    draw.text((MARGIN, top + 38), explanation.note, font=_font(16), fill=FAINT)
    return sheet


def _steps(explanation: Explanation, kernels: int, thresholds: list[float]) -> list[Image.Image]:
    return [
        as_picture(explanation.input),
        edge_picture(explanation.edge_response, thresholds),
        kernel_picture(explanation.kernel_index, kernels),
        as_picture(explanation.blurred),
        as_picture(explanation.output),
    ]


def _draw_legend(draw: ImageDraw.ImageDraw, at: tuple[float, float], sizes: list[int]) -> None:
    """A square of each kernel's colour with its width, from the weakest edges to the strongest."""
    left, top = at
    for size, color in zip(sizes, kernel_colors(len(sizes)), strict=True):
        draw.rectangle((left, top + 2, left + 15, top + 17), fill=color, outline=FAINT)
        label = f"{size} x {size}" if size > 1 else "none"
        draw.text((left + 22, top), label, font=_font(16), fill=FAINT)
        left += 22 + draw.textlength(label, font=_font(16)) + 18


def _thumbnail_pixels(height: int, width: int, settings: dict[str, Any]) -> int:
    return min(height, settings["thumbnail_size"]) * min(width, settings["thumbnail_size"])


def _draw_bars(draw: ImageDraw.ImageDraw, at: tuple[int, int], tall: int, explanation: Explanation, total: int) -> None:
    """A bar for each of the most frequent colours, as long as its population."""
    assert explanation.palette is not None
    assert explanation.population is not None
    order = torch.argsort(explanation.population, descending=True, stable=True)
    shown = order[: min(MOST_BARS, max(1, tall // 16))]
    left, top = at
    step = min(34.0, tall / len(shown))
    longest = int(explanation.population.max())
    font = _font(max(9, min(15, int(step) - 3)))
    colors = color_bytes(explanation.palette[shown])
    for i, (color, held) in enumerate(zip(colors, explanation.population[shown].tolist(), strict=True)):
        end = left + 2 + (CELL - 70) * held / longest
        y = top + i * step
        draw.rectangle((left, y, end, y + max(1, step - 3)), fill=color, outline=(214, 206, 190))
        share = f"{100 * held / total:.1f} %"
        draw.text((end + 8, y + (step - 3) / 2), share, font=font, fill=FAINT, anchor="lm")
    if len(order) > len(shown):
        rest = f"and {len(order) - len(shown)} more"
        draw.text((left + CELL, top + tall - 4), rest, font=_font(16), fill=INK, anchor="rs")


def _shorten(draw: ImageDraw.ImageDraw, text: str, room: int) -> str:
    """The text, cut in its middle where it would not fit."""
    whole = text
    while draw.textlength(text, font=_font(30)) > room:
        keep = len(text) // 2 - 2
        text = whole[:keep] + "…" + whole[-keep:]
    return text


def _font(size: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(size)
