"""False claims that no model is needed to find, and those that pretend to be decided by rounding."""

import json
from dataclasses import replace

import pytest
import torch
from evaluation_cases import LINF, SMALL_PLAN, Linear, direction, line, pictures

import linocut
from linocut.attacks.pgd import PGD
from linocut.evaluation.closeness import CLOSE, is_close
from linocut.evaluation.contradictions import contradictions
from linocut.evaluation.ledger import ROWS
from linocut.evaluation.record import Record
from linocut.evaluation.rows import to_line
from linocut.evaluation.verify import _leads_by_little, verify

MODEL = Linear(direction())
PROBE = line(PGD(name="probe", num_steps=4), LINF, "probe")


@pytest.fixture
def forged(judged, tmp_path):
    """forged(change): what verify says after the first row for which `change` gives another is replaced by it."""

    def run(change, model=MODEL):
        record = judged(MODEL, [*SMALL_PLAN, PROBE])
        assert contradictions(record) == []
        old, new = next((row, other) for row in record.rows if (other := change(row)) is not None)
        rows = [new if row is old else row for row in record.rows]
        (tmp_path / "ledger" / ROWS).write_text("".join(map(to_line, rows)))
        return verify(tmp_path / "ledger", model, torch.device("cpu"))

    return run


def test_a_lower_published_accuracy_without_a_claim_is_found(forged):
    """Accuracies are made of predictions: one that is wrong on a row that claims nothing is a claim all the same."""
    outcome = forged(
        lambda row: (
            replace(row, prediction=1 - row.label) if row.entry == "linf/pgd-published" and not row.broken else None
        )
    )
    assert outcome.close == []
    assert "and is called not broken" in outcome.failures[0]


def test_another_label_is_found(forged):
    """The natural image itself is "misclassified" if its label may be chosen."""
    outcome = forged(
        lambda row: (
            replace(row, label=1 - row.label, clean=1 - row.label) if row.entry != "clean" and row.broken else None
        )
    )
    assert any("the clean row says" in failure for failure in outcome.failures)


def test_a_broken_row_whose_prediction_is_its_label_is_found(forged):
    """It was called close once: the two classes are one, and their logits differ by nothing."""
    outcome = forged(lambda row: replace(row, prediction=row.label) if row.broken else None, Linear(-direction()))
    assert any("and is called broken" in failure for failure in outcome.failures)
    assert outcome.close == []


def test_a_probe_that_alone_breaks_an_example_must_show_its_image(forged):
    def claim(row):
        if row.entry != "linf/probe" or row.broken or row.clean != row.label:
            return None
        return replace(row, broken=True, prediction=1 - row.label)

    assert "no entry keeps an image" in forged(claim).failures[0]


def test_an_attacked_example_without_a_clean_row_is_found(judged):
    record = judged(MODEL)
    header = {"settings": record.settings, "entries": record.entries, "made_with": record.made_with}
    fewer = Record(header, [row for row in record.rows if row.key != ("clean", 3)])
    assert contradictions(fewer)
    assert all("example 3: there is no clean row" in told for told in contradictions(fewer))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"config": "deadbeef0000"}, "was made with other settings than the header's"),
        ({"seed": 1}, "has a seed that is not its example's"),
        ({"distance": 99.0}, "says a distance beyond its ball"),
        ({"applicable": False}, "says that the attack does not apply, and what it did"),
    ],
)
def test_a_row_that_the_header_denies_is_found(forged, change, told):
    outcome = forged(lambda row: replace(row, **change) if row.broken else None)
    assert any(told in failure for failure in outcome.failures)


def forged_header(record, change):
    header = json.loads(json.dumps({"settings": record.settings, "entries": record.entries, "made_with": {}}))
    change(header)
    return contradictions(Record(header, record.rows))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda header: header["entries"]["linf/pgd-published"].update(eps=0.5), "are not those it ran with"),
        (lambda header: header["entries"]["linf/pgd-published"].update(eps=0.5), "the published attack had another"),
        (lambda header: header["settings"]["radii"].update(l2=0.5), "judges a radius of 0.5"),
        (lambda header: header["settings"].update(n=30), "of an example that the header's sample does not have"),
    ],
)
def test_a_header_that_is_not_the_rows_is_found(judged, change, told):
    assert any(told in each for each in forged_header(judged(MODEL), change))


def test_one_class_far_below_makes_no_claim_close():
    scores = torch.tensor([1.0, 2.0, 0.0, 0.5, -1.0, -1e6])
    assert not is_close(scores, 1, 0)
    scores[0] = 2.0 - CLOSE / 2
    assert is_close(scores, 1, 0)


def test_an_image_is_close_to_its_next_class_whichever_that_is():
    """Rounded for packing, an image may be taken for another class than its row names."""
    scores = torch.tensor([1.6, -2.4, 4.478, 0.3, 3.0, -2.3, 4.483])
    assert _leads_by_little(scores, 6)
    assert not _leads_by_little(scores - torch.tensor([0, 0, 1.0, 0, 0, 0, 0]), 6)


@pytest.mark.parametrize("there", [1, -1, 3, 99])
def test_a_class_that_is_the_same_or_does_not_exist_is_not_close(there):
    assert not is_close(torch.tensor([0.0, 1.0, 0.0]), 1, there)


def test_chances_of_zero_do_not_make_others_close():
    nothing = [-torch.inf] * 8
    assert not is_close(torch.tensor([10.0, 0.0, *nothing]), 0, 1)
    assert not is_close(torch.tensor([10.0, *nothing]), 0, 1)
    assert is_close(torch.tensor([-1.0, -1.0 - CLOSE / 2, *nothing]), 0, 1)


def test_of_two_classes_a_tie_is_close():
    assert is_close(torch.tensor([1.0, 1.0000001]), 0, 1)
    assert not is_close(torch.tensor([1.0, 0.9]), 0, 1)


def test_a_tiny_ball_contradicts_nothing(tmp_path):
    """Images are admitted with a slack of a millionth, which is much of such a radius."""
    given = pictures(40)
    asked = {"eps": 1e-5, "norm": "linf", "suite": "fast", "progress": False}
    linocut.evaluate(Linear(direction()), given.unit(), given.labels, out=tmp_path, **asked)
    assert contradictions(Record.read(tmp_path)) == []
