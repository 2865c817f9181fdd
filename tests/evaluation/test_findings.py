"""For every finding, one defence (or attack) that triggers it and one that does not."""

import copy
import inspect
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from defences import (
    GradientKiller,
    Hooked,
    NotANumber,
    OffTheGrid,
    OnlyNearby,
    PassesBy,
    RandomNoise,
    sixteen_levels,
)
from evaluation_cases import CLEAN, L2, LINF, RADII, Linear, case_of, direction, pictures

from linocut.attacks.threat import ThreatModel
from linocut.cli.evaluate import evaluate as evaluate_command
from linocut.evaluation import arsenal, findings, suites
from linocut.evaluation.balls import Ball
from linocut.evaluation.findings import CHECKS, find
from linocut.evaluation.findings.finding import status_of_gap
from linocut.evaluation.measures import differing_forwards, pixel_digests
from linocut.evaluation.record import Share
from linocut.evaluation.run import evaluate
from linocut.evaluation.sample import Sample
from linocut.evaluation.stranger import Preprocessed
from linocut.evaluation.wrapped import Expectation

NORMS = ("linf", "l2")


def ball(threat: ThreatModel, path: float = 2.5, num_steps: int = 8) -> Ball:
    return Ball(threat=threat, values=36, num_steps=num_steps, step_size=path * threat.eps / num_steps)


BOTH = {"linf": ball(LINF), "l2": ball(L2)}


def no_more(*_):
    """No worst case beyond the published attack and the probes."""
    return []


class Verdict:
    """A record and its findings by code and norm."""

    def __init__(self, record):
        self.record = record
        self.findings = {(finding.code, finding.norm): finding for finding in find(record)}

    def __getitem__(self, key):
        return self.findings[key]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """found(model, ...): the verdict of a quick suite; asked again in the same words, the same verdict."""
    verdicts = {}

    def run(model, *, balls=BOTH, worst=arsenal.fast, twin=None, seen=None, draws=1, probe=True):
        key = (repr(model), str(balls), worst, twin is None, seen, draws)
        if key in verdicts:
            return verdicts[key]
        plan = suites.measures(None, seen=seen is not None)
        for norm, one in balls.items():
            plan += [arsenal.published(one), *(arsenal.probes(one, None) if probe else [])]
            plan += [arsenal.reuse(one)] if norm == "l2" and "linf" in balls else []
            plan += worst(one, twin)
        judge = Expectation(model, draws) if draws > 1 else model
        case = case_of(judge, searcher=judge, raw=model, twin=twin, seen=seen)
        sample = Sample(size=60, n=60, batch_size=60)
        radii = {norm: one.threat.eps for norm, one in balls.items()}
        folder = tmp_path_factory.mktemp("found")
        record = evaluate(case, plan, sample, folder, radii=radii, settings={"suite": "test", "draws": draws})
        verdicts[key] = Verdict(record)
        return verdicts[key]

    return run


@pytest.fixture
def sound():
    return Linear(direction())


def test_a_sound_model_triggers_nothing(found, sound):
    findings = found(sound, twin=Linear(direction()), seen=frozenset()).findings
    assert list(dict.fromkeys(code for code, _ in findings)) == list(CHECKS)
    assert len(CHECKS) == 15
    assert {finding.code for finding in findings.values() if finding.status == "warn"} <= {"quantised"}
    assert not [finding for finding in findings.values() if finding.status == "fail"]
    for finding in findings.values():
        assert finding.sentence.endswith(".")
        assert finding.advice or finding.status in ("ok", "not applicable")
        assert finding.numbers or finding.status == "not applicable"


@pytest.mark.parametrize(("model", "number"), [(GradientKiller(), "zero"), (NotANumber(), "not_finite")])
def test_zero_gradient(found, model, number):
    finding = found(model)["zero-gradient", None]
    assert finding.status == "fail"
    assert finding.numbers[number] == 60


@pytest.mark.parametrize("norm", NORMS)
def test_one_step(found, norm):
    finding = found(OffTheGrid())["one-step", norm]
    assert finding.status == "fail"
    assert finding.numbers["weaker_points"] > 0.5


@pytest.mark.parametrize("norm", NORMS)
def test_unbounded(found, norm):
    finding = found(GradientKiller())["unbounded", norm]
    assert finding.status == "fail"
    assert finding.numbers["left"]["count"] > 0


def test_monotone(found):
    finding = found(OnlyNearby())["monotone", "linf"]
    assert finding.status == "fail"
    assert len(finding.numbers["curve"]) == 8


def test_converged(found, sound):
    short = {"linf": ball(LINF, path=0.5), "l2": ball(L2, path=0.5)}
    for norm in NORMS:
        finding = found(sound, balls=short)["converged", norm]
        assert finding.status == "fail"
        assert finding.numbers["fall_points"] > 0.5
    barely = {"linf": ball(LINF, path=1.15), "l2": ball(L2, path=1.15)}
    finding = found(sound, balls=barely)["converged", "l2"]
    assert finding.status == "warn"
    assert finding.numbers["path_over_radius"] == pytest.approx(1.15)


@pytest.mark.parametrize("norm", NORMS)
def test_ascent(found, sound, norm):
    finding = found(Hooked(helpful=False))["ascent", norm]
    assert finding.status == "fail"
    assert finding.numbers["lower"]["percent"] > 50
    assert found(sound)["ascent", norm].status == "ok"


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("model", [GradientKiller(), Linear(direction(), scale=1e-30)], ids=["cut off", "rounded away"])
def test_an_attack_whose_loss_does_not_move_does_not_climb(found, model, norm):
    finding = found(model)["ascent", norm]
    assert (finding.status, finding.numbers["still"]["percent"]) == ("fail", 100)
    assert "the loss does not move" in finding.sentence


@pytest.mark.parametrize("norm", NORMS)
def test_a_loss_that_floats_call_zero_may_stand_still(found, norm):
    """Above a margin of some 17 cross-entropy is 0 in float32, however far an attack walks."""
    assert found(Linear(direction(), scale=1e4))["ascent", norm].status == "ok"


@pytest.mark.parametrize("norm", NORMS)
def test_black_box(found, norm):
    finding = found(GradientKiller(), balls={norm: BOTH[norm]})["black-box", norm]
    assert finding.status == "fail"
    assert finding.numbers["percent"] > 1


def test_noise(found):
    finding = found(GradientKiller(), balls={"l2": BOTH["l2"]})["noise", "l2"]
    assert finding.status == "fail"
    assert finding.numbers["count"] > 0


def test_containment(found, sound):
    weak = found(sound, balls={"linf": ball(LINF), "l2": ball(L2, path=0.2)})
    assert weak["containment", None].status == "warn"
    assert weak["containment", None].numbers["published_points"] > 0
    smaller = {"linf": ball(LINF), "l2": ball(ThreatModel("l2", 0.01))}
    assert found(sound, balls=smaller, worst=no_more)["containment", None].status == "not applicable"
    alone = {"l2": ball(L2)}
    assert found(sound, balls=alone)["containment", None].status == "not applicable"


def test_containment_fails_where_merging_did_not_happen(found, sound):
    record = copy.deepcopy(found(sound).record)
    for name in record.counting("l2"):
        record.of[name] = {example: replace(row, broken=False) for example, row in record.of[name].items()}
    assert Verdict(record)["containment", None].status == "fail"


@pytest.mark.parametrize("norm", NORMS)
def test_transfer(found, sound, norm):
    finding = found(GradientKiller(), twin=sound)["transfer", norm]
    assert finding.status == "fail"
    assert finding.numbers["percent"] > 0.5
    assert found(sound)["transfer", norm].status == "warn"


@pytest.mark.parametrize("norm", NORMS)
def test_surrogate(found, sound, norm):
    assert found(Hooked(helpful=False))["surrogate", norm].status == "fail"
    assert found(Hooked(helpful=True))["surrogate", norm].status == "ok"
    assert found(sound)["surrogate", norm].status == "not applicable"


def test_silent(found):
    verdict = found(PassesBy(), balls={"linf": ball(LINF, num_steps=40)})
    assert verdict["silent", "linf"].status == "warn"
    assert verdict["silent", "linf"].numbers["published_only"] > 0
    record = copy.deepcopy(verdict.record)
    for name in record.counting("linf", column="worst") + record.counting("linf", column="probe"):
        record.of[name] = {}  # with the published attack alone nobody counts what it passed
    assert Verdict(record)["silent", "linf"].status == "fail"


def test_quantised(found, sound):
    below_one_level = {"linf": ball(ThreatModel("linf", 0.0015))}
    finding = found(sound, balls=below_one_level)["quantised", "linf"]
    assert finding.status == "fail"
    assert finding.numbers["rounded"]["percent"] == 100
    assert finding.numbers["exact"]["percent"] < 99


def test_leak(found, sound):
    images = pictures()
    finding = found(sound, seen=frozenset(pixel_digests(images.pixels[[3, 8]])))["leak", None]
    assert finding.status == "fail"
    assert finding.numbers["examples"] == [3, 8]
    assert found(sound)["leak", None].status == "not applicable"


def test_more_than_half_a_point_fails_unless_it_is_one_example():
    assert status_of_gap(Share(11, 20), Share(10, 20)) == "warn"
    assert status_of_gap(Share(51, 150), Share(50, 150)) == "warn"
    assert status_of_gap(Share(52, 150), Share(50, 150)) == "fail"
    assert status_of_gap(Share(12, 20), Share(10, 20)) == "fail"
    assert status_of_gap(Share(1002, 2000), Share(1000, 2000)) == "ok"
    assert status_of_gap(Share(10, 20), Share(11, 20)) == "ok"


def closed_form(norm: str) -> int:
    score = ((pictures().unit() - 0.5) * direction()).flatten(1).sum(dim=1).abs()
    dual = direction().abs().sum() if norm == "linf" else direction().norm()
    return int((score > RADII[norm] * dual).sum())


@pytest.mark.parametrize("norm", NORMS)
def test_the_suite_sees_through_a_gradient_killer_with_its_twin(found, sound, norm):
    record = found(GradientKiller(), twin=sound).record
    assert record.after(f"{norm}/pgd-published").percent > 90
    assert record.worst(norm).count == closed_form(norm)


@pytest.mark.parametrize("norm", NORMS)
def test_the_suite_sees_through_softmax_times_100(found, norm):
    verdict = found(Linear(direction(), scale=100))
    assert verdict["zero-gradient", None].status == "fail"
    assert verdict.record.worst(norm).count == closed_form(norm)


def test_the_suite_sees_through_bit_depth_reduction(found, sound):
    probe = pictures().unit(slice(0, 4))
    naive = found(Preprocessed(sixteen_levels, sound, surrogate="own"), worst=no_more)
    assert naive["zero-gradient", None].status == "fail"
    assert naive.record.after("l2/pgd-published").percent == naive.record.clean.percent
    straight = Preprocessed(sixteen_levels, sound, probe=probe)
    assert straight.surrogate == "identity"
    verdict = found(straight)
    assert verdict["zero-gradient", None].status == "ok"
    assert verdict["surrogate", "linf"].status == "ok"
    assert verdict.record.worst("linf").percent < verdict.record.clean.percent - 10


def test_the_suite_sees_through_random_noise(found):
    verdict = found(RandomNoise(), balls={"linf": ball(LINF)}, draws=20, worst=no_more, probe=False)
    assert verdict["randomness", None].status == "fail"
    assert "20 draws" in verdict["randomness", None].sentence
    standing = closed_form("linf") / 60
    assert abs(verdict.record.worst("linf").count / 60 - standing) < 0.15


def test_randomness_off_the_grid_of_whole_levels_is_seen():
    images = pictures().unit(slice(0, 5))

    def shy(points):
        off = ((points * 255 - (points * 255).round()).abs() > 1e-3).flatten(1).any(dim=1)
        return points.flatten(1)[:, :2] + off[:, None] * torch.rand(len(points), 2)

    assert torch.equal(shy(images), shy(images))
    assert (differing_forwards(shy, images) == 4).all()
    assert not differing_forwards(lambda points: points.flatten(1)[:, :2], images).any()


def test_an_expectation_is_a_fixed_function_and_leaves_the_dice_alone():
    mean, images = Expectation(RandomNoise()), pictures().unit(slice(0, 5))
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first = mean(images)
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first, mean(images))
    assert torch.allclose(first.exp().sum(dim=1), torch.ones(5))
    assert not hasattr(mean, "frozen")
    hooked = Expectation(Hooked(helpful=True), draws=2)
    assert isinstance(hooked.with_surrogate("none"), Expectation)


@pytest.mark.parametrize("draw", [lambda: float(np.random.randn()), random.random], ids=["numpy", "python"])
def test_an_expectation_is_fixed_whichever_generator_the_model_uses(draw):
    mean, images = Expectation(lambda x: x.flatten(1)[:, :3] * draw()), pictures().unit(slice(0, 5))
    before = np.random.get_state()[1].tolist(), random.getstate()
    assert torch.equal(mean(images), mean(images))
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before


def test_only_clean_rows_make_no_findings_fail(judged, sound):
    record = judged(sound, [CLEAN])
    assert {finding.status for finding in find(record)} <= {"ok", "warn", "not applicable"}


def test_advice_names_only_options_that_exist():
    pages = [path.read_text() for path in Path(findings.__file__).parent.glob("*.py")]
    named = {option for page in pages for option in re.findall(r"\(--([a-z]+)\)", page)}
    assert named
    assert named <= set(inspect.signature(evaluate_command).parameters)
