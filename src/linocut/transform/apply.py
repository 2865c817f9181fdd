"""The transform for people without tensors: a uint8 array or a Pillow image in, the same kind out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from linocut.errors import InputError
from linocut.transform.modules import EssentialFeatures
from linocut.transform.presets import preset_settings
from linocut.transform.settings import EIGHTHS_PER_LEVEL, FULL_SCALE

WANTED = "wanted uint8 pixels (H,W), (H,W,1), (H,W,3) or a batch (N,H,W,C), or a Pillow image of mode L or RGB"


def apply(
    image: Any,
    *,
    preset: str | None = None,
    image_size: int | Sequence[int] | None = None,
    device: str | torch.device = "cpu",
    **settings: Any,
) -> Any:
    """The image in few colours: an array gives a new uint8 array of its shape, a Pillow image a Pillow image.

    `preset` names one of the paper's experiments and `image_size` rescales its kernels; `settings` are
    keyword arguments of EssentialFeatures and go before the preset's. Colours are rounded half to even.

    >>> apply(np.full((2, 2, 3), 77, dtype=np.uint8))[0, 0].tolist()
    [77, 77, 77]
    """
    if image_size is not None and preset is None:
        raise InputError("image_size rescales a preset's kernels: give preset too")
    chosen = preset_settings(preset, image_size) if preset is not None else {}
    try:
        features = EssentialFeatures(**{**chosen, **settings})
    except TypeError as reason:
        raise InputError(f"EssentialFeatures does not take this: {reason}") from None
    pixels = _pixels(image)
    painted = _paint(features, pixels, _there(device))
    if isinstance(image, np.ndarray):
        return painted.reshape(image.shape)
    picture = image.copy()
    picture.frombytes(painted.tobytes())
    return picture


def _there(device: str | torch.device) -> torch.device:
    """The device, if it can be used here."""
    try:
        probe = torch.zeros(1, device=device)
        probe.cpu()  # which "meta" cannot give
        return probe.device
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as reason:
        raise InputError(f"the device {device!s} cannot be used here ({str(reason).split('.')[0]}): use cpu") from None


def _pixels(image: Any) -> np.ndarray:
    """(N,H,W,C) uint8, checked."""
    if _is_pillow(image):
        if image.mode not in ("L", "RGB"):
            raise InputError(f"got a Pillow image of mode {image.mode}; {WANTED}: {_made_plain(image.mode)}")
        if "transparency" in image.info:  # a colour that stands for nothing: painting would move others onto it
            raise InputError(f"got a Pillow image with a transparent colour; {WANTED}: {_made_plain('RGBA')}")
        array = np.asarray(image)
    elif isinstance(image, np.ndarray):
        array = image
    else:
        raise InputError(f"got {type(image).__module__}.{type(image).__qualname__}; {WANTED}")
    if array.dtype != np.uint8:
        hint = "multiply by 255, round, and use astype(np.uint8)" if array.dtype.kind == "f" else "scale it to 0..255"
        raise InputError(f"got an array of {array.dtype}; {WANTED}: {hint}")
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim == 3:
        array = array[None]
    if array.ndim != 4 or array.shape[3] not in (1, 3) or 0 in array.shape[1:]:
        shape = image.shape if isinstance(image, np.ndarray) else image.size
        raise InputError(f"got shape {shape}; {WANTED}{_layout_hint(shape)}")
    return array


def _layout_hint(shape: tuple[int, ...]) -> str:
    if len(shape) in (3, 4) and shape[-1] == 4:
        return ": RGBA? lay it on a background, or drop alpha: image[..., :3]"
    if len(shape) in (3, 4) and shape[-3] in (1, 3):
        return ": layout (C,H,W)? use np.moveaxis(image, -3, -1)"
    return ""


def _is_pillow(image: Any) -> bool:
    """Whether it is a Pillow image, told by what it can do: Pillow itself need not be imported."""
    return all(hasattr(image, name) for name in ("mode", "size", "frombytes", "copy"))


def _paint(features: EssentialFeatures, pixels: np.ndarray, device: torch.device) -> np.ndarray:
    """(N,H,W,C) uint8 -> the same: a level u enters as exactly 8u, a colour leaves as rint(colour / 8)."""
    x = torch.from_numpy(pixels.copy()).to(device).permute(0, 3, 1, 2).float().div_(255).contiguous()
    return as_levels(features(x)).permute(0, 2, 3, 1).cpu().contiguous().numpy()


def as_levels(unit: torch.Tensor) -> torch.Tensor:
    """Unit floats of a transform as uint8: back to whole eighths first, so that halves round to even exactly."""
    return (unit * FULL_SCALE).round_().div_(EIGHTHS_PER_LEVEL).round_().to(torch.uint8)


def _made_plain(mode: str) -> str:
    """How an image of this mode becomes one that can be painted, without clipping or losing what lies behind alpha."""
    if mode.startswith("I"):
        return "divide its values by 257 (16 bits) into an array of uint8; image.convert() would clip them"
    if mode in ("RGBA", "LA", "PA", "RGBa", "La"):
        return "lay it on a background: Image.alpha_composite(background, image.convert('RGBA')).convert('RGB')"
    return "use image.convert('RGB')"
