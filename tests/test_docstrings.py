"""The examples in docstrings give what they say."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import linocut

ROOT = Path(linocut.__file__).parent
WITH_EXAMPLES = sorted(path.relative_to(ROOT.parent) for path in ROOT.rglob("*.py") if ">>>" in path.read_text())


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=str)
def test_examples(path):
    module = import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0
