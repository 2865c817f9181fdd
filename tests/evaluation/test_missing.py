"""A ledger whose rows are not all there, or were made by another model, says so."""

import shutil

import pytest
import torch
from evaluation_cases import Linear, case_of, direction, line

from linocut.errors import InputError
from linocut.evaluation.balls import balls
from linocut.evaluation.closeness import are_alike
from linocut.evaluation.missing import missing
from linocut.evaluation.record import Record
from linocut.evaluation.rows import to_line
from linocut.evaluation.run import evaluate
from linocut.evaluation.sample import Sample
from linocut.evaluation.suites import plan
from linocut.evaluation.verify import verify
from linocut.report.sources import read_all

CPU, MODEL = torch.device("cpu"), Linear(direction())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of `fast` in both norms, which has entries of every kind but transfer."""
    folder = tmp_path_factory.mktemp("run") / "whole"
    run(folder, MODEL)
    return folder


@pytest.fixture
def copied(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "copied")


class Stops:
    name = "stops"

    def run(self, *_):
        raise RuntimeError("stopped")


def run(folder, model, suite="fast", more=()):
    radii = balls("digits", 36, ("linf", "l2"), 0.02)
    settings = {"suite": suite, "model": "m", "model_hash": "h", "data": "pictures", "data_hash": "d", "draws": 1}
    return evaluate(
        case_of(model),
        [*plan(suite, radii), *(line(attack, radii["linf"].threat) for attack in more)],
        Sample(size=60, n=40, batch_size=10),
        folder,
        radii={norm: ball.threat.eps for norm, ball in radii.items()},
        settings=settings | {"preprocess": None, "twin": None},
    )


def keep(folder, wanted):
    rows = [row for row in Record.read(folder).rows if wanted(row)]
    (folder / "rows.jsonl").write_text("".join(map(to_line, rows)))


def test_a_finished_run_lacks_nothing(whole):
    record = Record.read(whole)
    assert {entry["column"] for entry in record.entries.values()} == {"clean", "measure", "published", "probe", "worst"}
    assert 0 < record.worst("linf").count < record.clean.count
    assert missing(record) == {}


@pytest.mark.parametrize("suite", ["paper", "strong"])
def test_nor_does_one_of_a_longer_suite(suite, tmp_path):
    assert missing(run(tmp_path / "run", MODEL, suite)) == {}


def test_broken_rows_cannot_be_left_out(copied):
    before = Record.read(copied)
    keep(copied, lambda row: not row.broken)
    assert Record.read(copied).worst("linf").count > before.worst("linf").count  # which is what it would gain
    failures = verify(copied, MODEL, CPU).failures
    assert any(told.startswith("linf/pgd-published") and told.endswith("rows were removed") for told in failures)
    with pytest.raises(InputError, match="must have met"):
        read_all([copied])


def test_a_row_less_of_the_last_attack_is_seen(copied):
    record = Record.read(copied)
    last = [name for name in record.counting("linf", column="worst") if record.of[name]][-1]
    one = next(iter(record.of[last]))
    keep(copied, lambda row: (row.entry, row.example) != (last, one))
    assert missing(Record.read(copied)) == {last: 1}


def test_an_unfinished_run_is_told_and_one_without_rows_fails(copied):
    parts = copied / "parts"
    parts.mkdir(exist_ok=True)
    (copied / "rows.jsonl").rename(parts / "rank-0.jsonl")
    found = verify(copied, MODEL, CPU)
    assert found.unfinished
    assert found.failures == []
    (parts / "rank-0.jsonl").unlink()
    assert verify(copied, MODEL, CPU).failures == ["there are no rows"]


def test_another_model_under_the_same_name_is_refused(copied):
    with pytest.raises(InputError, match="was made with a model that took example"):
        run(copied, Linear(-direction()))
    run(copied, MODEL)


def test_the_same_classes_by_other_logits_are_another_model_too(copied):
    """As with another temperature, which no class tells."""
    with pytest.raises(InputError, match="gave other logits"):
        run(copied, Linear(direction(), scale=2.0))
    run(copied, Linear(direction(), scale=1.001))


@pytest.mark.parametrize(
    ("now", "alike"),
    [
        ([[1.0, 2.0, 4.01], [3.0, 1.0, 2.0]], True),
        ([[1.0, 2.0, 4.2], [3.0, 1.0, 2.0]], False),
        ([[101.0, 102.0, 104.0], [103.0, 101.0, 102.0]], True),  # what is added to all classes says nothing
        ([[0.1, 0.2, 0.4], [0.3, 0.1, 0.2]], False),
        ([[1.0, 2.0]], False),
    ],
)
def test_logits_are_alike_by_their_lead(now, alike):
    assert are_alike([[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]], now) is alike
    masked = [[-1e30, *scores] for scores in now]  # a class that is never chosen hides nothing
    assert are_alike([[-1e30, 1.0, 2.0, 4.0], [-1e30, 3.0, 1.0, 2.0]], masked) is alike


def test_a_plan_that_grew_and_stopped_at_once_is_unfinished_not_damaged(copied):
    with pytest.raises(RuntimeError, match="stopped"):
        run(copied, MODEL, more=[Stops()])
    found = verify(copied, MODEL, CPU)
    assert found.unfinished
    assert found.failures == []
    assert read_all([copied])[0].unfinished


def test_an_l2_radius_may_be_longer_than_the_box_is_wide():
    found = balls("cifar-10", 3072, ("l2",), 1.74)
    assert found["l2"].threat.eps == 1.74
    assert found["l2"].step_size == pytest.approx(0.05)
    with pytest.raises(InputError, match="radius above 0"):
        balls("cifar-10", 3072, ("l2",), 0.0)
