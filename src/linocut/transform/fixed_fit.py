"""From training images to a codebook and the record of where it came from."""

import hashlib
from typing import Any

import numpy as np
import torch

from linocut.errors import InputError
from linocut.transform import medoids
from linocut.transform.fixed import LEVELS, check_radius, check_size, densest, in_eighths
from linocut.transform.histogram import ColorHistogram
from linocut.transform.kernels.dispatch import backend as kernels
from linocut.transform.settings import is_whole

BUILDERS = ("density", "medoids")
KNOWN = ("name", "split", "sha256")  # what a data set says of itself, and a bare tensor does not


def fit_codebook(
    images: Any, k: int, r: float, *, builder: str, sample: int, seed: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Colours uint8 (K,C), and their origin, which JSON can hold: settings, populations, name and hash of the data."""
    if builder not in BUILDERS:
        raise InputError(f"builder must be one of {', '.join(BUILDERS)}, got {builder!r}")
    check_size(k)
    if builder == "density":
        check_radius(r)
    known = {} if isinstance(images, torch.Tensor) else {name: getattr(images, name, None) for name in KNOWN}
    if known.get("split") == "test":
        raise InputError("a codebook must not see test images: fit it on the training split")
    pixels = getattr(images, "pixels", images)
    if not isinstance(pixels, torch.Tensor) or pixels.dtype != torch.uint8 or pixels.ndim != 4 or not pixels.numel():
        raise InputError(f"wanted images with uint8 pixels (N,C,H,W), at least one, got {_shown(pixels)}")
    histogram = ColorHistogram(pixels.shape[1])
    histogram.add(pixels)
    seen, counts = histogram.table()
    origin: dict[str, Any] = {"builder": builder, "k": k}
    if builder == "density":
        origin["r"] = r
        colors = densest(seen, counts, k, r)
    else:
        if not is_whole(seed) or seed < 0:
            raise InputError(f"seed must be a whole number, 0 or more, got {seed!r}")
        origin |= {"sample": sample, "seed": seed}
        generator = np.random.default_rng(int(seed))
        colors = medoids.medoids(medoids.sample_pixels(pixels, sample, generator), k, generator)
    return colors, origin | {
        "population": populations(seen, counts, colors).tolist(),
        "images": len(pixels),
        "data": known.get("name"),
        "split": known.get("split"),
        "sha256": known.get("sha256") or _digest(pixels),
    }


def populations(seen: np.ndarray, counts: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """(K,) int64: how many of the counted pixels each code paints."""
    image = torch.from_numpy(in_eighths(seen.T))[None, :, None]  # one image that has every colour once
    painted = kernels("auto", image.device).paint_linf(image, torch.from_numpy(in_eighths(colors)))
    levels = painted[0, :, 0].mul(255).round().to(torch.int64).numpy()
    index = np.zeros(LEVELS ** colors.shape[1], dtype=np.int16)
    index[_packed(colors.T.astype(np.int64))] = np.arange(len(colors))
    held = np.zeros(len(colors), dtype=np.int64)
    np.add.at(held, index[_packed(levels)], counts)
    return held


def _packed(channels: np.ndarray) -> np.ndarray:
    """Each column of (C,M) levels as one number, its first channel major."""
    packed = channels[0]
    for channel in channels[1:]:
        packed = packed * LEVELS + channel
    return packed


def _digest(pixels: torch.Tensor) -> str:
    digest = hashlib.sha256(repr(tuple(pixels.shape)).encode())
    for image in pixels.split(1024):
        digest.update(image.cpu().contiguous().numpy().data)
    return digest.hexdigest()


def _shown(pixels: Any) -> str:
    return f"{pixels.dtype} {tuple(pixels.shape)}" if isinstance(pixels, torch.Tensor) else type(pixels).__name__
