"""The transform on a few pictures as one figure: a row a picture, a column a step. Paper: its pipeline figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from linocut.data.images import read_image
from linocut.recipes.figures import new_figure
from linocut.recipes.file_plan import as_one_line
from linocut.recipes.pictures import as_picture, edge_picture, kernel_picture, palette_strip
from linocut.transform.explain import Explanation
from linocut.transform.modules import EssentialFeatures

MOST_ROWS = 12
CELL = 1.7  # inches
_SWATCH = 240  # pixels, the width of a palette


def explained(
    paths: Sequence[Path], features: EssentialFeatures, device: torch.device
) -> list[tuple[str, Explanation]]:
    """The name of each picture and what became of it on this device; pictures may differ in size."""
    found = []
    for path in paths:
        pixels, _ = read_image(path)
        [explanation] = features.explain(pixels[None].to(device).float() / 255)
        found.append((as_one_line(path.name), explanation))
    return found


def strip_figure(found: Sequence[tuple[str, Explanation]], settings: dict[str, Any]) -> Any:
    """Input, edges, blurred, palette, output of each picture; of a single one the kernel choice and arrows too."""
    alone = len(found) == 1
    rows = [_steps(explanation, settings, kernels=alone) for _, explanation in found]
    titles = list(rows[0])
    tall = sum(min(3.0, max(0.4, row["input"].height / row["input"].width)) for row in rows)
    figure = new_figure(CELL * len(titles), CELL * tall + 0.5)
    if alone:
        figure.get_layout_engine().set(wspace=0.1)  # room for the arrows
    grid = figure.subplots(len(rows), len(titles), squeeze=False)
    for place, title in zip(grid[0], titles, strict=True):
        place.set_title(title, fontsize=9)
    for axes, (name, explanation), row in zip(grid, found, rows, strict=True):
        for place, title, picture in zip(axes, titles, row.values(), strict=True):
            place.imshow(picture, interpolation="nearest")
            place.set(xticks=[], yticks=[])
            place.spines[:].set_visible(False)
            if alone and title != titles[-1]:
                place.annotate("", (1.11, 0.5), (1.01, 0.5), xycoords="axes fraction", arrowprops={"arrowstyle": "->"})
        assert explanation.palette is not None
        axes[0].set_ylabel(name if len(name) <= 24 else f"{name[:11]}…{name[-11:]}", fontsize=7)
        axes[titles.index("palette")].set_xlabel(f"{len(explanation.palette)} colours", fontsize=7)
    return figure


def _steps(explanation: Explanation, settings: dict[str, Any], *, kernels: bool) -> dict[str, Image.Image]:
    assert explanation.palette is not None
    assert explanation.population is not None
    picture = as_picture(explanation.input)
    swatch = (_SWATCH, max(1, round(_SWATCH * picture.height / picture.width)))
    steps = {
        "input": picture,
        "edges": edge_picture(explanation.edge_response, settings["edge_thresholds"]),
        "kernel choice": kernel_picture(explanation.kernel_index, len(settings["kernel_sizes"])),
        "blurred": as_picture(explanation.blurred),
        "palette": palette_strip(explanation.palette, explanation.population, swatch),
        "output": as_picture(explanation.output),
    }
    return {name: step for name, step in steps.items() if kernels or name != "kernel choice"}
