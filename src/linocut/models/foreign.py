"""Weights from other people's .pt files, read without running what may be hidden in them."""

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
        content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except Exception as error:  # a hostile file can make the reader fail in any way
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{path} was refused, it must hold nothing but tensors: {reason:.300}") from error
    outline = architecture.outline()
    tensors = _state_in(content, str(path))
    for name, tensor in outline.state_dict().items():
        if name.endswith("num_batches_tracked"):  # absent from old files, and never used here
            tensors.setdefault(name, torch.zeros((), dtype=tensor.dtype))
        elif name in tensors and tensors[name].is_floating_point():
            tensors[name] = tensors[name].to(tensor.dtype)
    fits(tensors, outline, str(path))
    outline.load_state_dict(tensors, assign=True)
    return Defended(None, outline).eval()


def _state_in(content: Any, path: str) -> dict[str, torch.Tensor]:
    for wrapper in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
            break
    if not isinstance(content, Mapping) or not content:
        raise InputError(f"{path} holds a {type(content).__name__}, wanted a state dict of tensors")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise InputError(f"{path} holds {name!r:.80} of type {type(value).__name__}, wanted named tensors alone")
    names = list(content)
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in names):
            names = [name.removeprefix(prefix) for name in names]
    return dict(zip(names, (value.detach().contiguous() for value in content.values()), strict=True))
