"""What this machine has, what works on it, and whether every backend gives the same bits."""

import importlib.metadata
import platform
import shutil
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from linocut.data.plan import usable_cores
from linocut.transform.parity import check_backends

PACKAGES = ("linocut", "torch", "numpy", "numba", "triton", "pillow", "safetensors", "scikit-learn", "typer", "rich")


def examine() -> dict[str, Any]:
    """Everything `linocut doctor` knows, JSON-able; `healthy` is False if a backend differs or is broken."""
    start = time.perf_counter()
    checks = check_backends()
    return {
        "healthy": not any(check.status in ("differs", "broken") for check in checks),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "torch_threads": torch.get_num_threads(),
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        "cuda_of_torch": torch.version.cuda,
        "packages": {name: _version(name) for name in PACKAGES},
        "backends": [asdict(check) for check in checks],
        "warnings": _warnings(),
        "seconds": round(time.perf_counter() - start, 2),
    }


def cpu_model() -> str:
    """The processor's name as the system gives it."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def nvidia_driver_present() -> bool:
    """Whether an NVIDIA driver is installed, whatever torch makes of it."""
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def _warnings() -> list[str]:
    if not nvidia_driver_present() or torch.cuda.is_available():
        return []
    if torch.version.cuda is None:
        return ["an NVIDIA driver is present, but this torch is built without CUDA: install a CUDA build of torch"]
    return ["an NVIDIA driver is present, but torch finds no GPU: driver too old, or no GPU visible to this process?"]


def _version(name: str) -> str | None:
    if name == "linocut":
        from linocut import __version__

        return __version__
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
