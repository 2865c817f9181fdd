"""The transform at work on two photographs, step by step, as parts of a page."""

import base64
import html
import importlib.util
import io
import string
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import torch
from PIL import Image

from linocut.data.images import read_image
from linocut.errors import InputError
from linocut.recipes.pictures import (
    as_picture,
    color_bytes,
    count_colors,
    edge_picture,
    kernel_colors,
    kernel_picture,
    palette_strip,
)
from linocut.transform import reference
from linocut.transform.apply import as_levels
from linocut.transform.explain import Explanation
from linocut.transform.modules import EssentialFeatures
from linocut.transform.presets import preset_settings

PRESET = "imagenette"
THUMBNAIL_ENLARGED = 8


@dataclass(frozen=True, kw_only=True)
class Photograph:
    """A photograph, and what the page calls it."""

    path: Path
    title: str


def photographs() -> list[Photograph]:
    """The two photographs that scikit-learn ships; it is found, not imported, which would take a second."""
    package = importlib.util.find_spec("sklearn")
    if package is None or not package.submodule_search_locations:
        raise InputError("the demo shows two photographs that scikit-learn ships: pip install 'linocut[data]'")
    folder = Path(package.submodule_search_locations[0], "datasets", "images")
    return [
        Photograph(path=folder / "china.jpg", title="A temple"),
        Photograph(path=folder / "flower.jpg", title="A flower"),
    ]


def photograph_sections() -> list[str]:
    """The steps of each photograph as HTML, pictures and all."""
    return [_section(photograph, number) for number, photograph in enumerate(photographs(), 1)]


def _section(photograph: Photograph, number: int) -> str:
    """The steps of one photograph as HTML."""
    pixels, _ = read_image(photograph.path)
    height, width = pixels.shape[1:]
    # The torch backend needs no compiler: for two pictures it is done before numba has started.
    chosen = preset_settings(PRESET, (height, width))
    features = EssentialFeatures(**chosen, backend="torch")
    [explanation] = features.explain(pixels[None].float() / 255)
    assert explanation.palette is not None
    assert explanation.population is not None
    sizes, thresholds = chosen["kernel_sizes"], chosen["edge_thresholds"]
    settings = features.settings()
    eps_levels = 255 * settings["eps"]
    values = {
        "number": number,
        "title": html.escape(photograph.title),
        "width": width,
        "height": height,
        "before": f"{count_colors(pixels):,}",
        "after": count_colors(as_levels(explanation.output)),
        "eps": f"{eps_levels:g}",
        "edge_shift": f"{2 * eps_levels:g}",
        "first_threshold": f"{thresholds[0]:g}",
        "last_threshold": f"{thresholds[-1]:g}",
        "threshold_gap": f"{thresholds[1] - thresholds[0]:g}",
        "apart": f"{settings['separation'] * eps_levels:g}",
        "legend": "".join(_legend(sizes)),
        "swatches": "".join(_swatches(explanation)),
        "shares": "".join(_shares(explanation, sizes)),
        "input_picture": _embedded(as_picture(explanation.input), "JPEG"),
        "edge_picture": _embedded(edge_picture(explanation.edge_response, thresholds), "PNG"),
        "kernel_picture": _embedded(kernel_picture(explanation.kernel_index, len(sizes)), "PNG"),
        "blurred_picture": _embedded(as_picture(explanation.blurred), "JPEG"),
        "thumbnail_picture": _embedded(_thumbnail(explanation, settings["thumbnail_size"]), "PNG"),
        "strip_picture": _embedded(palette_strip(explanation.palette, explanation.population, (960, 40)), "PNG"),
        "output_picture": _embedded(as_picture(explanation.output), "PNG"),
    }
    template = resources.files("linocut.recipes").joinpath("demo_section.html").read_text(encoding="utf-8")
    return string.Template(template).substitute(values)


def _thumbnail(explanation: Explanation, size: int) -> Image.Image:
    """The small picture on which the palette was found, each of its pixels enlarged."""
    small = reference.thumbnail(reference.enter(explanation.blurred.numpy()), size)
    picture = as_picture(torch.from_numpy(reference.leave(small)))
    enlarged = (picture.width * THUMBNAIL_ENLARGED, picture.height * THUMBNAIL_ENLARGED)
    return picture.resize(enlarged, Image.Resampling.NEAREST)


def _legend(sizes: tuple[int, ...]) -> Iterator[str]:
    for size, (r, g, b) in zip(sizes, kernel_colors(len(sizes)), strict=True):
        yield f'<li><i style="background:rgb({r},{g},{b})"></i>{size} × {size}</li>'


def _shares(explanation: Explanation, sizes: tuple[int, ...]) -> Iterator[str]:
    """How much of the picture each kernel blurred."""
    counts = torch.bincount(explanation.kernel_index.flatten().long(), minlength=len(sizes))
    for size, count in zip(sizes, counts.tolist(), strict=True):
        share = 100 * count / explanation.kernel_index.numel()
        yield f"<li>{size} × {size}: <b>{share:.0f} %</b> of all values</li>"


def _swatches(explanation: Explanation) -> Iterator[str]:
    """Every colour with its population, most frequent first."""
    assert explanation.palette is not None
    assert explanation.population is not None
    order = torch.argsort(explanation.population, descending=True, stable=True)
    held = explanation.population[order].tolist()
    for (r, g, b), count in zip(color_bytes(explanation.palette[order]), held, strict=True):
        ink = "#000" if 2 * r + 5 * g + b > 8 * 128 else "#fff"
        yield f'<li style="background:rgb({r},{g},{b});color:{ink}">{count}</li>'


def _embedded(picture: Image.Image, kind: str) -> str:
    stream = io.BytesIO()
    picture.save(stream, format=kind, **({"quality": 92} if kind == "JPEG" else {"optimize": True}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
