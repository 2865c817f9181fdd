"""Where to compute."""

import torch

from linocut.errors import InputError


def choose(name: str | None) -> torch.device:
    """The device of this name; the first GPU that torch can use, else the CPU, where none is named."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device must be cpu, cuda or cuda:1 and so on, got {name!r}") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"the transform runs on cpu and cuda, got {name!r}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"{name!r}: torch sees {torch.cuda.device_count()} GPUs here; `linocut doctor` says why")
    return device
