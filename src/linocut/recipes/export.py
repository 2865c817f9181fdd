"""A saved model becomes an ONNX file, checked on real images where there are any."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from linocut.adapters.onnx import Agreement, write
from linocut.data import load as load_data
from linocut.data.loading import LARGEST_SIDE
from linocut.errors import InputError
from linocut.models import Card, load, read_card
from linocut.transform.presets import PRESETS


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What the check of a written file said, and which images it was made on."""

    checked_on: str
    agreement: Agreement


def export(
    model: Path,
    out: Path,
    *,
    image_size: int | None = None,
    data: str | None = None,
    root: Path | None = None,
    n: int = 1000,
) -> Exported:
    """Write the model and check it on the first n test images of `data`.

    Left out, `data` is the set that the card names; where its files are not there, a few made-up images serve.
    """
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    if image_size is not None and not 1 <= image_size <= LARGEST_SIDE:
        raise InputError(f"image_size must be a whole number from 1 to {LARGEST_SIDE}, got {image_size}")
    card = read_card(model).card
    side = image_size or (card.image_size if data in (None, card.data_set) else None)
    sample = _test_images(data or card.data_set, root, side, n, required=data is not None)
    if sample is not None:
        found, wanted = int(sample.shape[1]), card.architecture.in_channels
        if found != wanted:
            told = f"the images of {data or card.data_set} have {found} channels, the model takes {wanted}"
            raise InputError(f"{told}: give --data of such images")
        checked_on = f"test images of {data or card.data_set}"
        shape = (int(sample.shape[1]), int(sample.shape[2]), int(sample.shape[3]))
    else:
        checked_on, shape = "made-up images", _shape(card, side, model)
    return Exported(checked_on=checked_on, agreement=write(load(model), out, shape, sample))


def _test_images(name: str | None, root: Path | None, side: int | None, n: int, *, required: bool) -> Tensor | None:
    """(B,C,H,W): the first n test images; None where they cannot be read and nobody asked for them."""
    if name is None:
        return None
    try:
        images = load_data(name, root=root, split="test", image_size=side)
    except InputError:
        if required:
            raise
        return None
    return images.unit(torch.arange(min(n, len(images))))


def _shape(card: Card, side: int | None, model: Path) -> tuple[int, int, int]:
    side = side or (PRESETS[card.data_set].image_size if card.data_set in PRESETS else None)
    if side is None:
        raise InputError(f"the card of {model} does not say how large images are: give --image-size or --data")
    return card.architecture.in_channels, side, side
