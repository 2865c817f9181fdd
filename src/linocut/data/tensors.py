"""Images and labels that lie in memory already, as tensors or arrays."""

from typing import Any

import numpy as np
import torch

from linocut.data.dataset import Images, from_arrays
from linocut.errors import InputError

WANTED = "wanted images (N,C,H,W), float in [0,1] or uint8"
ROUNDING = {torch.float16: 0.07}  # of a level, by which a format may miss whole ones in [0,1]
GUESSES = (  # lowest and highest value, and what they look like
    (-0.001, 1.001, "a rounding's excess? clamp to [0,1]"),
    (0.0, 255.0, "whole levels? divide by 255"),
    (-1.0, 1.0, "a range of -1 to 1? give (images + 1) / 2, and let the model undo it"),
    (-10.0, 10.0, "normalised by mean and std? give the images before that, and let the model normalise"),
)


def from_tensors(images: Any, labels: Any, *, name: str) -> Images:
    """The images as whole grey levels, and their labels; classes are numbered up to the largest label.

    images: (N,C,H,W), uint8 or whole levels on the unit range. labels: whole numbers (N,).
    """
    pixels, classes = _levels(_tensor(images, WANTED)), _classes(_tensor(labels, "wanted labels (N,)"))
    if len(pixels) != len(classes) or not len(pixels):
        raise InputError(f"got {len(pixels)} images and {len(classes)} labels: wanted as many of each, at least one")
    return from_arrays(
        pixels=pixels.numpy(),
        labels=classes.numpy(),
        classes=tuple(str(number) for number in range(max(int(classes.max()) + 1, 2))),
        name=name,
        split="test",
    )


def _tensor(given: Any, wanted: str) -> torch.Tensor:
    try:
        if not isinstance(given, torch.Tensor):
            given = torch.as_tensor(np.array(given))  # a copy: arrays may be read-only, or run backwards
        return given.detach().to_dense().cpu()
    except (TypeError, ValueError, NotImplementedError, RuntimeError) as reason:
        raise InputError(f"got a {type(given).__name__} that is no array of numbers, {wanted} ({reason})") from None


def _levels(images: torch.Tensor) -> torch.Tensor:
    """The same images as uint8."""
    shape = tuple(images.shape)
    if len(shape) != 4:
        raise InputError(f"got images of shape {shape}, {WANTED}: one image needs [None], grey ones [:, None]")
    if shape[1] > 4 and shape[3] <= 4:
        raise InputError(f"got images of shape {shape}, {WANTED}: of (N,H,W,C)? use permute(0, 3, 1, 2)")
    if images.dtype == torch.uint8:
        return images
    if not images.is_floating_point():
        raise InputError(f"got images of {images.dtype}, {WANTED}: give whole levels as uint8")
    scaled = images.double() * 255
    low, high = (float(end) / 255 for end in scaled.aminmax()) if scaled.numel() else (0.0, 0.0)
    if not (low >= 0 and high <= 1):  # NaN is neither
        told = [guess for least, most, guess in GUESSES if least <= low and high <= most]
        raise InputError(f"got values from {low:.4g} to {high:.4g}, {WANTED}: {[*told, 'scale them to [0,1]'][0]}")
    levels = scaled.round()
    off = (scaled - levels).abs() > ROUNDING.get(images.dtype, 1e-3)
    if bool(off.any()):
        share = 100 * float(off.double().mean())
        raise InputError(
            f"{share:.3g} % of the values are no whole grey levels (as after a resize in floats), and a ledger keeps "
            "images as pictures are kept: judge what a file would hold, (images.float() * 255).round() / 255"
        )
    return levels.to(torch.uint8)


def _classes(labels: torch.Tensor) -> torch.Tensor:
    told = f"got labels of {labels.dtype} {tuple(labels.shape)}, wanted whole numbers (N,)"
    if labels.ndim == 2:
        advice = "take labels[:, 0]" if labels.shape[1] == 1 else "of one-hot ones take labels.argmax(1)"
        raise InputError(f"{told}: {advice}")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool or labels.ndim != 1:
        raise InputError(f"{told}: use labels.astype(int) or labels.long()")
    labels = labels.to(torch.int64)
    if len(labels) and int(labels.min()) < 0:
        raise InputError(f"got a label of {int(labels.min())}, wanted labels from 0 on")
    return labels
