"""The steps of the transform as pictures that a person can read."""

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image, ImageDraw

PAPER, INK, FAINT = (250, 247, 240), (38, 34, 30), (128, 118, 106)
# From "much blur" to "none": sand, ochre, wine. Their lightness falls, so that no hue need be told apart.
SAND, OCHRE, WINE = (234, 224, 200), (219, 140, 64), (88, 28, 52)


def as_picture(unit: torch.Tensor) -> Image.Image:
    """An image of unit floats (C,H,W) as an RGB picture."""
    levels = (unit.clamp(0, 1) * 255).round().to(torch.uint8).expand(3, -1, -1)
    return Image.fromarray(levels.permute(1, 2, 0).contiguous().numpy())


def edge_picture(response: torch.Tensor, thresholds: Sequence[float]) -> Image.Image:
    """Edge responses (C,H,W) as ink on paper: the strongest channel of each pixel, black from `darkest` on."""
    darkness = (response.amax(dim=0).numpy() / darkest(thresholds)).clip(0, 1)[:, :, None]
    return _mix(np.array(PAPER), np.array(INK), darkness)


def darkest(thresholds: Sequence[float]) -> float:
    """The response drawn black: twice the last threshold, so that each threshold is a visible grey."""
    return max(1.0, 2 * float(thresholds[-1])) if thresholds else 255.0


def kernel_colors(count: int) -> list[tuple[int, int, int]]:
    """One colour for each kernel, the largest first."""
    stops = np.array([SAND, OCHRE, WINE], dtype=float)
    places = np.linspace(0, 2, count) if count > 1 else np.array([0.0])
    mixed = [np.interp(places, [0, 1, 2], stops[:, channel]) for channel in range(3)]
    return [(round(r), round(g), round(b)) for r, g, b in zip(*mixed, strict=True)]


def kernel_picture(kernel_index: torch.Tensor, count: int) -> Image.Image:
    """Kernel choices (C,H,W) in the colours above; where channels chose differently, their mean."""
    table = np.array(kernel_colors(count), dtype=np.float32)
    return Image.fromarray(np.rint(table[kernel_index.numpy()].mean(axis=0)).astype(np.uint8))


def count_colors(levels: torch.Tensor) -> int:
    """The number of different colours of a uint8 image (C,H,W)."""
    packed = np.zeros(levels.shape[1:], np.int32)
    for channel in levels.numpy():
        packed = packed * 256 + channel
    flat = packed.reshape(-1)
    borders = flat[1:][flat[1:] != flat[:-1]]  # few colours come in long runs: far less to sort
    return len(np.unique(np.append(borders, flat[0])))


def color_bytes(palette: torch.Tensor) -> list[tuple[int, int, int]]:
    """The palette (K,C) of unit floats as RGB triples; grey is repeated."""
    levels = (palette * 255).round().to(torch.int64).expand(-1, 3)
    return [(r, g, b) for r, g, b in levels.tolist()]


def palette_strip(palette: torch.Tensor, population: torch.Tensor, size: tuple[int, int]) -> Image.Image:
    """All colours side by side, each as wide as its share of the thumbnail, largest population first."""
    width, height = size
    order = torch.argsort(population, descending=True, stable=True)
    ends = (population[order].cumsum(0) / population.sum() * width).round().to(torch.int64).tolist()
    colors = color_bytes(palette[order])
    strip = Image.new("RGB", size, colors[-1])
    draw, left = ImageDraw.Draw(strip), 0
    for color, end in zip(colors, ends, strict=True):
        if end > left:
            draw.rectangle((left, 0, end - 1, height), fill=color)
        left = end
    return strip


def fit(picture: Image.Image, side: int) -> Image.Image:
    """The picture within side x side: small ones enlarged pixel by pixel, large ones averaged."""
    longest = max(picture.size)
    if longest > side:
        width, height = (max(1, round(n * side / longest)) for n in picture.size)
        return picture.resize((width, height), Image.Resampling.BOX)
    times = max(1, side // longest)
    return picture.resize((picture.width * times, picture.height * times), Image.Resampling.NEAREST)


def _mix(light: np.ndarray, dark: np.ndarray, share: np.ndarray) -> Image.Image:
    return Image.fromarray(np.rint(light + (dark - light) * share).astype(np.uint8))
