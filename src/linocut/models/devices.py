"""What computes: found by its name, and named."""

import platform

import torch

from linocut.errors import InputError


def device_named(name: str | None, number: int | None = None) -> torch.device:
    """The device of this name; for None and "auto" a GPU where there is one, that of this number if one is given."""
    if name is None or name == "auto":
        if not torch.cuda.is_available():
            return torch.device("cpu")
        return torch.device("cuda") if number is None else torch.device("cuda", number)
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"no device is called {name!r}: use cpu, cuda or auto, or cuda:1 and so on") from None
    if device.type == "cuda" and not _is_there(device):
        raise InputError(
            f"{name} was asked for, and torch sees {torch.cuda.device_count()} GPUs: use --device cpu; "
            "`linocut doctor` says why"
        )
    return device


def _is_there(gpu: torch.device) -> bool:
    return torch.cuda.is_available() if gpu.index is None else gpu.index < torch.cuda.device_count()


def name_of(device: torch.device) -> str:
    """The GPU's name, or the kind of the processor."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
