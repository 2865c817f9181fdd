"""Which backend runs: asked for by name, or chosen for the device. Each is imported when it is first used."""

import importlib
import os
import sys
from types import ModuleType

import torch

from linocut.errors import InputError

MODULES = {
    "reference": "linocut.transform.kernels.numpy_loop",
    "torch": "linocut.transform.kernels.torch_ops",
    "numba": "linocut.transform.kernels.numba_cpu",
    "triton": "linocut.transform.kernels.triton_cuda",
}
FASTEST = {"cpu": "numba", "cuda": "triton"}


def check_name(name: str) -> str:
    """The name, if it is a backend's."""
    if not isinstance(name, str) or (name != "auto" and name not in MODULES):
        raise InputError(f"backend must be 'auto' or one of {', '.join(MODULES)}, got {name!r}")
    return name


def backend(name: str, device: torch.device) -> ModuleType:
    """The module of kernels for tensors on this device (see kernels/__init__.py for its six functions)."""
    if device.type not in FASTEST:
        raise InputError(f"got a tensor on {device}; the transform runs on cpu and cuda (it needs float64): move it")
    if name == "auto":
        fastest = FASTEST[device.type]
        name = fastest if _installed(fastest) and not _only_python(fastest) else "torch"
    elif name in ("numba", "triton"):
        _check_usable(name, device)
    return importlib.import_module(MODULES[check_name(name)])


def _installed(package: str) -> bool:
    """Whether numba or triton itself can be imported; a fault in our own module is never hidden by this."""
    if sys.modules.get(package) is not None:  # the usual case, and asked at every call
        return True
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True


def _only_python(name: str) -> bool:
    """Whether Numba was told not to compile, as debuggers and coverage tools do; the kernels need it to."""
    return name == "numba" and importlib.import_module("numba").config.DISABLE_JIT


def _check_usable(name: str, device: torch.device) -> None:
    if not _installed(name):
        raise InputError(f"backend {name!r} needs {name}: pip install {name}, or use backend='auto'")
    if _only_python(name):
        raise InputError("backend 'numba' needs its compiler: unset NUMBA_DISABLE_JIT, or use backend='auto'")
    if name == "numba" and device.type != "cpu":
        raise InputError(f"backend 'numba' works on CPU tensors, got one on {device}: use backend='auto'")
    if name == "triton" and device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        raise InputError(f"backend 'triton' works on CUDA tensors, got one on {device}: use backend='auto'")
