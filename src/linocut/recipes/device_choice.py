"""Where to compute."""

import torch

from linocut.errors import InputError
from linocut.models.devices import device_named


def choose(name: str | None) -> torch.device:
    """The device of this name; for None and "auto" the GPU that torch would use, else the CPU."""
    device = device_named(name)
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"the transform runs on cpu and cuda, got {name!r}")
    return device
