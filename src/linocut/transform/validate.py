"""What a transform accepts: float32 tensors (B,C,H,W) of 1 or 3 channels in [0,1]; all else gets a hint."""

from typing import Any

import torch

from linocut.errors import InputError

WANTED = "wanted a float32 tensor (B,C,H,W), C = 1 or 3, values in [0,1]"


def check_form(x: Any) -> None:
    """Raise unless x is a tensor of the right type and shape; costs nothing, needs no values."""
    if not isinstance(x, torch.Tensor):
        raise InputError(f"got {_kind(x)}; {WANTED}: {_conversion(x)}")
    if x.is_nested:  # has no shape
        raise InputError(f"got a nested tensor; {WANTED}: transform images of one size at a time")
    _check_shape(tuple(x.shape))
    if x.dtype != torch.float32:
        raise InputError(f"got dtype {str(x.dtype).removeprefix('torch.')}; {WANTED}: {_cast(x.dtype)}")
    if x.layout != torch.strided:
        raise InputError(f"got a tensor of layout {x.layout}; {WANTED}: use x.to_dense()")


def check_values(x: torch.Tensor) -> None:
    """Raise unless all values are finite and in [0,1]. Reads the tensor, so CUDA has to wait for it."""
    if x.numel() == 0:
        return
    low, high = (float(v) for v in x.detach().aminmax())  # NaN goes through
    if low >= 0 and high <= 1:
        return
    nan, inf = int(x.isnan().sum()), int(x.isinf().sum())
    if nan or inf:
        raise InputError(f"got {nan} NaN and {inf} infinite values among {x.numel()}; {WANTED}: find their source")
    raise InputError(f"got values from {low:.9g} to {high:.9g}; {WANTED}: {_range_guess(low, high)}")


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 4:
        raise InputError(f"got shape {_text(shape)}; {WANTED}: {_rank_guess(shape)}")
    if shape[1] not in (1, 3):
        raise InputError(f"got shape {_text(shape)}, {shape[1]} channels; {WANTED}: {_channel_guess(shape)}")
    if shape[2] == 0 or shape[3] == 0:
        raise InputError(f"got shape {_text(shape)}, an image without pixels; {WANTED}")


def _text(shape: tuple[int, ...]) -> str:
    return "(" + ",".join(str(n) for n in shape) + ")"


def _kind(x: Any) -> str:
    return "None" if x is None else f"{type(x).__module__}.{type(x).__qualname__}"


def _conversion(x: Any) -> str:
    module = type(x).__module__
    if module.startswith("numpy"):
        return "use torch.from_numpy(x).float(), and divide by 255 if it holds whole levels"
    if module.startswith("torch.fx"):
        return "nothing inside can be traced: let the Tracer's is_leaf_module be True for this module, or torch.export"
    if module.startswith("PIL"):
        return "make it an array first, then torch.from_numpy(array).permute(2, 0, 1)[None].float() / 255"
    if isinstance(x, list | tuple):
        return "torch.stack(x) makes one batch of a list of tensors"
    return "make it a tensor first"


def _cast(dtype: torch.dtype) -> str:
    if dtype == torch.uint8:
        return "divide by 255: x.float() / 255"
    if dtype.is_floating_point:
        return "use x.float()"
    return "make it float32 on the unit range: x.float() / 255 for whole levels"


def _rank_guess(shape: tuple[int, ...]) -> str:
    if len(shape) == 3 and shape[0] not in (1, 3) and shape[2] in (1, 3, 4):
        return "one image of layout (H,W,C)? use x.permute(2, 0, 1)[None]"
    if len(shape) == 3 and shape[0] in (1, 3, 4):
        return "one image without a batch? add a batch dimension: x[None]"
    if len(shape) == 3:
        return "grey images without a channel? add it: x[:, None]"
    if len(shape) == 2:
        return "one grey image? add batch and channel: x[None, None]"
    if len(shape) > 4:
        return "several leading dimensions? merge them: x.flatten(0, -4)"
    return "give a batch of images"


def _channel_guess(shape: tuple[int, ...]) -> str:
    if shape[3] in (1, 3, 4):
        return "layout (B,H,W,C)? use x.permute(0, 3, 1, 2)"
    if shape[1] == 4:
        return "RGBA? lay it on a background, or drop alpha: x[:, :3]"
    if shape[1] == 2:
        return "grey with alpha? drop alpha: x[:, :1]"
    return "transform images of 1 or 3 channels"


def _range_guess(low: float, high: float) -> str:
    if low >= -0.01 and high <= 1.01:
        return "a rounding's excess, or an attack's? clamp to [0,1]"
    if low >= 0 and 2 <= high <= 255:
        return "whole levels? divide by 255"
    if -1 <= low < -0.1 and high <= 1:
        return "a range of -1 to 1? use (x + 1) / 2"
    if -10 <= low < 0 and high <= 10:
        return "normalised by mean and std? transform before normalising; an attack's step? clamp to [0,1]"
    return "scale or clamp to [0,1]"
