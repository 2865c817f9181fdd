"""What a process that keeps its freed memory spares itself, counted in pages."""

import platform
import subprocess
import sys

import pytest

from linocut.cli import memory

PROBE = """
import resource, sys, torch
from linocut.cli import memory
if sys.argv[1] == "keep":
    memory.keep_freed_memory()
for _ in range(10):
    torch.ones(1 << 24)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    torch.ones(1 << 24)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how):
    """How many pages the system had to map for ten tensors of 64 MiB, one after the other."""
    run = subprocess.run([sys.executable, "-c", PROBE, how], capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep memory")
def test_a_tensor_that_comes_again_maps_no_new_pages():
    assert faults("keep") < 0.1 * faults("as it is")


@pytest.mark.parametrize("trouble", [OSError, AttributeError])
def test_another_c_library_is_left_alone(trouble, monkeypatch):
    def load(name):
        raise trouble

    monkeypatch.setattr(memory.ctypes, "CDLL", load)
    memory.keep_freed_memory()


def test_an_older_glibc_keeps_what_it_can(monkeypatch):
    calls = []

    class Old:
        @staticmethod
        def mallopt(which, value):
            calls.append((which, value))
            return 0 if which == memory.M_MMAP_THRESHOLD and value == memory.NEVER else 1

    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: Old)
    monkeypatch.setattr(memory.sys, "platform", "linux")
    memory.keep_freed_memory()
    assert calls[1:] == [(memory.M_MMAP_THRESHOLD, 32 << 20), (memory.M_TRIM_THRESHOLD, memory.NEVER)]


def test_the_command_line_keeps_its_memory(monkeypatch):
    from linocut import cli

    order = []
    monkeypatch.setattr(cli, "keep_freed_memory", lambda: order.append("kept"))
    monkeypatch.setattr(cli, "app", lambda: order.append("ran"))
    cli.main()
    assert order == ["kept", "ran"]
