"""What every test may ask for: how much to try, where real data lies; and a network that ends at this machine."""

import os
import socket
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # one worker a core: more threads would only wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="full counts, as `make test-all` runs them")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--full"):
        skip = pytest.mark.skip(reason="full counts only: make test-all")
        for item in items:
            if "full" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def count(request):
    """count(fast, full): how many cases to try under this command."""
    return lambda fast, full: full if request.config.getoption("--full") else fast


@pytest.fixture(scope="session")
def data_root():
    """The folder that holds the real data sets in their official layouts, named by LINOCUT_DATA."""
    root = os.environ.get("LINOCUT_DATA")
    if not root or not Path(root).is_dir():
        pytest.skip("real data sets: set LINOCUT_DATA to the folder that holds them")
    return Path(root)


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch):
    """Any connection that would leave this machine fails the test."""
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in LOOPBACK:
            pytest.fail(f"a test tried to reach {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
