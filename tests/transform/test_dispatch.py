"""The backend for a device: by name, or the fastest that is installed."""

import importlib
import sys

import pytest
import torch

from linocut.errors import InputError
from linocut.transform.kernels import dispatch, numpy_loop, torch_ops

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_names_give_their_modules():
    assert dispatch.backend("reference", CPU) is numpy_loop
    assert dispatch.backend("torch", CPU) is torch_ops
    assert dispatch.backend("torch", CUDA) is torch_ops


def test_auto_takes_the_fastest_installed(monkeypatch):
    pytest.importorskip("numba")
    assert dispatch.backend("auto", CPU).__name__.endswith("numba_cpu")
    monkeypatch.setitem(sys.modules, "numba", None)  # as if it were not installed
    monkeypatch.setitem(sys.modules, "triton", None)
    assert dispatch.backend("auto", CPU) is torch_ops
    assert dispatch.backend("auto", CUDA) is torch_ops


@pytest.mark.parametrize("name", ["numba", "triton"])
def test_a_missing_package_is_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=f"pip install {name}"):
        dispatch.backend(name, CPU)


def test_without_a_compiler_numba_is_left_out(monkeypatch):
    monkeypatch.setattr(pytest.importorskip("numba").config, "DISABLE_JIT", 1)
    assert dispatch.backend("auto", CPU) is torch_ops
    with pytest.raises(InputError, match="NUMBA_DISABLE_JIT"):
        dispatch.backend("numba", CPU)


def test_a_fault_of_our_own_is_not_hidden(monkeypatch):
    pytest.importorskip("numba")

    def load(name, real=importlib.import_module):
        if name.endswith("numba_cpu"):
            raise ImportError("cannot import name 'gone'")
        return real(name)

    monkeypatch.setattr(importlib, "import_module", load)
    with pytest.raises(ImportError, match="gone"):
        dispatch.backend("auto", CPU)


def test_wrong_devices_are_refused(monkeypatch):
    pytest.importorskip("numba")
    with pytest.raises(InputError, match="works on CPU tensors"):
        dispatch.backend("numba", CUDA)
    with pytest.raises(InputError, match="float64"):
        dispatch.backend("auto", torch.device("mps"))
    with pytest.raises(InputError, match="backend must be"):
        dispatch.check_name("opencl")
