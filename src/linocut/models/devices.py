"""What computes: its name."""

import platform

import torch


def name_of(device: torch.device) -> str:
    """The GPU's name, or the kind of the processor."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
