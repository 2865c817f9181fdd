"""The script that installs each extra alone: what it looks for, and that it forgets none."""

import importlib.machinery
import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "check_extras"


@pytest.fixture(scope="module")
def script():
    loader = importlib.machinery.SourceFileLoader("check_extras", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_extras", loader))
    loader.exec_module(module)
    return module


def test_cuda_is_seen(script):
    cpu = [{"name": "torch", "version": "2.13.0+cpu"}, {"name": "numpy", "version": "2.4"}]
    assert script.cuda_packages(cpu) == []
    gpu = [{"name": "torch", "version": "2.13.0+cu130"}, {"name": "nvidia-cublas", "version": "1"}]
    assert script.cuda_packages(gpu) == ["nvidia-cublas 1", "torch 2.13.0+cu130"]


def test_every_extra_has_a_check(script):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) - {"dev", "all"} <= set(script.IMPORTS)


def test_an_unknown_extra_is_refused():
    done = subprocess.run([sys.executable, SCRIPT, "nonsense"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "nonsense" in done.stderr


@pytest.mark.full
@pytest.mark.parametrize("extra", ["art", "foolbox", "autoattack", "onnx", "report", "data"])
def test_an_extra_installs_alone(script, extra):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if extra not in extras:
        pytest.skip(f"pyproject.toml has no extra {extra}")
    assert script.check(extra) == []
