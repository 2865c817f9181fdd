"""A saved model becomes an ONNX file, checked on images of the user's choice."""

import os
from pathlib import Path

import torch

from linocut.adapters.onnx import Agreement, write
from linocut.data import load as load_data
from linocut.errors import InputError
from linocut.models import load, read_card
from linocut.transform.presets import PRESETS


def export(
    model: Path,
    out: Path,
    *,
    image_size: int | None = None,
    data: str | None = None,
    root: Path | None = None,
    n: int = 100,
) -> Agreement:
    """What the check of the written file said. The sample is the first n test images of `data`, else made up."""
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    card, sample = read_card(model).card, None
    if data is not None:
        place = root or (Path(os.environ["LINOCUT_DATA"]) if "LINOCUT_DATA" in os.environ else None)
        images = load_data(data, root=place, split="test", image_size=image_size)
        sample = images.unit(torch.arange(min(n, len(images))))
        shape = (int(sample.shape[1]), int(sample.shape[2]), int(sample.shape[3]))
    else:
        side = image_size or (PRESETS[card.data_set].image_size if card.data_set in PRESETS else None)
        if side is None:
            raise InputError(f"the card of {model} does not say how large images are: give --image-size or --data")
        shape = (card.architecture.in_channels, side, side)
    return write(load(model), out, shape, sample)
