"""A picture of many pictures: samples of every class with their names, to see that labels fit."""

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from linocut.data.dataset import Images

CELL = 128  # the side of one picture on the sheet
GAP = 8
LINE = 15  # of text, of which a caption has two
MOST_CELLS = 60


def choose_samples(images: Images, seed: int = 0) -> list[int]:
    """Indices of random images, as many of each class as fit on a sheet, at least one, class by class."""
    random = np.random.default_rng(seed)
    labels = images.labels.cpu().numpy()
    found = [np.flatnonzero(labels == label) for label in range(len(images.classes))]
    each = max(1, MOST_CELLS // max(1, len(found)))
    return [int(i) for members in found for i in sorted(random.permutation(members)[:each])]


def contact_sheet(rows: Sequence[tuple[str, torch.Tensor]], captions: Sequence[str], columns: int = 10) -> Image.Image:
    """A sheet of all samples, each above its caption and once for each row: a title, uint8 (N, C, H, W)."""
    count = len(captions)
    columns = max(1, min(columns, count))
    font = ImageFont.load_default(size=12)
    lines = -(-count // columns)
    cell_height = CELL * len(rows) + 2 * LINE + GAP
    sheet = Image.new("RGB", (columns * (CELL + GAP) + GAP, lines * cell_height + LINE + GAP), "white")
    pen = ImageDraw.Draw(sheet)
    pen.text((GAP, 3), " / ".join(title for title, _ in rows) + " (from above)" * (len(rows) > 1), "black", font)
    for index, caption in enumerate(captions):
        left = GAP + (index % columns) * (CELL + GAP)
        top = LINE + GAP + (index // columns) * cell_height
        for row, (_, pixels) in enumerate(rows):
            sheet.paste(_cell(pixels[index]), (left, top + row * CELL))
        pen.multiline_text((left, top + CELL * len(rows)), _in_two_lines(caption, font), "black", font, spacing=1)
    return sheet


def _cell(pixels: torch.Tensor) -> Image.Image:
    """The picture at the size of a cell; small ones are enlarged without smoothing, so that pixels show."""
    picture = Image.fromarray(pixels.expand(3, -1, -1).permute(1, 2, 0).contiguous().cpu().numpy())
    way = Image.Resampling.NEAREST if picture.width < CELL else Image.Resampling.BILINEAR
    return picture.resize((CELL, CELL), way)


def _in_two_lines(caption: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> str:
    """The caption broken between words into lines as wide as a cell; what does not fit into two is cut."""
    lines = [""]
    for word in caption.split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) <= CELL or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(_cut(line, font) for line in lines[:2])


def _cut(line: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> str:
    shown = line
    while font.getlength(shown) > CELL:
        shown = shown[:-1]
    return shown if shown == line else shown[:-1] + "…"
