"""A quick way to judge small models. The path lets the tests import evaluation_cases beside them."""

import sys
from pathlib import Path

import pytest

from linocut.evaluation.case import Case
from linocut.evaluation.run import evaluate
from linocut.evaluation.sample import Sample

sys.path.insert(0, str(Path(__file__).parent))
from evaluation_cases import RADII, SMALL_PLAN, case_of


@pytest.fixture
def judged(tmp_path):
    """judged(model, plan, ...): the record of a plan on the pictures."""

    def run(model, plan=SMALL_PLAN, *, images=None, folder="ledger", radii=RADII, batch_size=16, **more):
        case = model if isinstance(model, Case) else case_of(model, images)
        sample = Sample(size=len(case.images), n=len(case.images), batch_size=batch_size)
        settings = {"suite": "test"} | more.pop("settings", {})
        return evaluate(case, plan, sample, tmp_path / folder, radii=radii, settings=settings, **more)

    return run
