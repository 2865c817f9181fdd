"""Ledgers once a session, and the reader of pages. The path lets the tests import what lies beside them."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from report_cases import run_ledger

from linocut.report import write


@pytest.fixture(scope="session")
def ledgers(tmp_path_factory):
    """The folder of two ledgers that were really run, plain and defended; not to be changed."""
    folder = tmp_path_factory.mktemp("ledgers")
    run_ledger(folder / "plain", defended=False, name="test/plain")
    run_ledger(folder / "defended", defended=True, name="test/defended")
    return folder


@pytest.fixture
def copied(ledgers, tmp_path):
    """copied(name): a copy of a ledger that may be changed."""
    return lambda name: Path(shutil.copytree(ledgers / name, tmp_path / "copies" / name))


@pytest.fixture(scope="session")
def page(ledgers, tmp_path_factory):
    """The page of both ledgers."""
    return write([ledgers / "plain", ledgers / "defended"], tmp_path_factory.mktemp("page"))
