"""Weights from other people's .pt files, read without running what may be hidden in them."""

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from linocut.errors import InputError
from linocut.models.architecture import Architecture
from linocut.models.defended import Defended
from linocut.models.store import fits

WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "model_state")
PREFIXES = ("module.", "model.", "_orig_mod.")


def read_pt(path: str | Path, architecture: Architecture) -> Defended:
    """The network of an architecture with the weights of a .pt file; anything but tensors in it is refused.

    Understands a plain state dict, one inside a training checkpoint, and the prefixes that
    DataParallel and torch.compile put before names.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that are refused below
            content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except Exception as error:  # a hostile file can make the reader fail in any way
        # Not the reader's own words, nor as the cause: they say how the file could be read by running what is in it.
        raise InputError(f"{path} was refused, it must hold nothing but tensors: {_reason(str(error))}") from None
    outline = architecture.outline()
    wanted = outline.state_dict()
    tensors = _state_in(content, str(path))
    for name, tensor in wanted.items():
        if name.endswith("num_batches_tracked"):  # absent from old files, and never used here
            tensors.setdefault(name, torch.zeros((), dtype=tensor.dtype))
    # A tensor of few bytes can claim any shape (strides of 0), so that none is copied before its shape is known.
    for name, tensor in tensors.items():
        if name in wanted and tensor.shape == wanted[name].shape and tensor.is_floating_point():
            tensors[name] = tensor.to(wanted[name].dtype)
    fits(tensors, outline, str(path))
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    outline.load_state_dict(tensors, assign=True)
    return Defended(None, outline).eval()


def _reason(told: str) -> str:
    """Why torch's reader stopped, from what it told."""
    named = re.search(r"GLOBAL ([\w.]{1,100})", told)
    if named:
        return f"it holds or calls {named[1]}; save the state_dict() alone"
    if "TorchScript" in told:
        return "it is a TorchScript archive; save the state_dict() of its network"
    return "it is damaged, or no .pt file of weights"


def _state_in(content: Any, path: str) -> dict[str, torch.Tensor]:
    for wrapper in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
            break
    if not isinstance(content, Mapping) or not content:
        raise InputError(f"{path} holds a {type(content).__name__}, wanted a state dict of tensors")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor) or not _is_plain(value):
            raise InputError(f"{path} holds {name!r:.80} of type {type(value).__name__}, wanted named tensors alone")
    names = list(content)
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in names):
            names = [name.removeprefix(prefix) for name in names]
    return dict(zip(names, (value.detach() for value in content.values()), strict=True))


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether the tensor has its numbers in memory, one after the other: not sparse, quantised or on no device."""
    return tensor.layout == torch.strided and tensor.device.type == "cpu" and not tensor.is_quantized
