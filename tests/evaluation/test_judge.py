import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace

import pytest
import torch
from evaluation_cases import CLEAN, L2, LINF, RADII, SMALL_PLAN, Linear, case_of, direction, line, pictures

from linocut.attacks.attack import Result
from linocut.attacks.hooks import NotApplicable
from linocut.attacks.pgd import PGD
from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError
from linocut.evaluation import shards
from linocut.evaluation.record import Record
from linocut.evaluation.reuse import Reuse
from linocut.evaluation.verify import verify
from linocut.evaluation.workers import Workers


def timeless(record):
    """Rows as they are compared everywhere: without the milliseconds, which no two runs share."""
    return [replace(row, milliseconds=0.0) for row in record.rows]


@dataclass(frozen=True, kw_only=True)
class Fake:
    """An attack that does what it is told: moves nothing, or everything out of the ball."""

    name: str = "fake"
    push: float = 0.0
    claim: bool = False
    refuse: bool = False

    def run(self, model, images, labels, threat, dice, starts=None):
        if self.refuse:
            raise NotApplicable("nothing to hold on to")
        none = torch.zeros(len(images))
        return Result(
            images=images + self.push,
            broken=torch.full((len(images),), self.claim),
            prediction=labels,
            loss_start=none,
            loss_best=none,
            loss_end=none,
            steps=none.int(),
            queries=none.int(),
            trace=None,
            silent=none.bool(),
        )


@pytest.fixture
def model():
    return Linear(direction())


def test_the_linear_model_reaches_its_closed_form_optimum(judged, model):
    """In a box far away, eps breaks an image exactly when |w.(x - 1/2)| < eps |w|_1 (L-inf) or eps |w|_2 (L2)."""
    images = pictures()
    score = ((images.unit() - 0.5) * direction()).flatten(1).sum(dim=1).abs()
    record = judged(model)
    for norm, dual in (("linf", direction().abs().sum()), ("l2", direction().norm())):
        standing = (score > RADII[norm] * dual).sum()
        assert 0 < standing < len(images)
        assert record.worst(norm).count == standing
        assert record.after(f"{norm}/pgd-published").count == standing


def test_rows_say_what_happened(judged, model):
    record = judged(model)
    for row in record.rows:
        assert row.config == record.entries[row.entry]["config"]
        if row.entry != "clean":
            assert row.broken == (row.prediction != row.label)
            assert (row.image is None) == (not row.broken)
            assert 0 <= row.distance <= RADII[record.entries[row.entry]["norm"]] + 1e-6
            assert row.milliseconds > 0
    published = record.of["linf/pgd-published"].values()
    assert {row.steps for row in published} == {4}
    assert len({row.seed for row in published}) == len(published)


def test_a_broken_example_leaves_the_worst_case_but_not_the_published_column(judged, model):
    record = judged(model)
    assert len(record.of["linf/pgd-published"]) == 60
    gone = record.broken_by(["linf/pgd-published"])
    assert gone
    assert set(record.of["linf/pgd-margin"]) == set(range(60)) - gone


def test_running_again_does_nothing_and_a_lost_batch_is_done_again_whole(judged, model, tmp_path):
    done = []
    first = judged(model)
    again = judged(model, watch=lambda entry, done_, due, before: done.append(done_ - before))
    assert timeless(again) == timeless(first)
    assert again.rows == first.rows  # even the milliseconds: nothing was run
    assert sum(done) == 0
    path = tmp_path / "ledger" / "rows.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:50] + lines[53:-9]))  # inside clean, and the end
    resumed = judged(model)
    assert timeless(resumed) == timeless(first)


def test_another_setting_is_refused(judged, model):
    judged(model)
    with pytest.raises(InputError, match=r"radii\.linf"):
        judged(model, radii={"linf": 0.01, "l2": L2.eps})
    with pytest.raises(InputError, match="batch_size"):
        judged(model, batch_size=8)
    with pytest.raises(InputError, match="l2/pgd-margin, which is not asked for now"):
        judged(model, SMALL_PLAN[:2])


@pytest.mark.parametrize("count_workers", [2, 3])
def test_workers_one_after_the_other_make_the_same_ledger_as_one(judged, model, tmp_path, count_workers):
    from linocut.evaluation.judge import Judge
    from linocut.evaluation.ledger import Ledger, merge
    from linocut.evaluation.sample import Sample

    whole = judged(model)
    other = tmp_path / "other"
    judged(model, folder="other")
    (other / "rows.jsonl").unlink()  # the header stays, the rows are made anew by several workers
    sample = Sample(size=60, n=60, batch_size=16)
    for rank in reversed(range(count_workers)):
        judge = Judge(case_of(model), SMALL_PLAN, sample, Ledger(other, rank), RADII)
        judge.run(sample.batches(rank, count_workers), lambda *_: None)
    merge(other)
    assert timeless(Record.read(other)) == timeless(whole)


def test_linf_successes_are_reused_in_l2(judged, model):
    weak = PGD(name="pgd-published", num_steps=1, step_size=1e-6)
    plan = [
        CLEAN,
        line(PGD(name="pgd", num_steps=5, any_iterate=True), LINF),
        line(weak, L2, "published"),
        line(Reuse(), L2, kind="reuse", starts="linf"),
    ]
    record = judged(model, plan)
    assert record.after("l2/pgd-published").percent == 100
    assert record.worst("l2").count == record.worst("linf").count < 60


def test_starts_outside_a_smaller_ball_are_brought_in(judged, model):
    small = ThreatModel("l2", 0.01)
    plan = [
        CLEAN,
        line(PGD(name="pgd", num_steps=5, any_iterate=True), LINF),
        line(Reuse(), small, kind="reuse", starts="linf"),
    ]
    record = judged(model, plan, radii={"linf": LINF.eps, "l2": 0.01})
    rows = record.of["l2/reuse-linf"].values()
    assert rows
    assert all(row.distance <= 0.01 + 1e-6 for row in rows)
    assert record.worst("l2").count > record.worst("linf").count


def test_an_attack_that_is_not_applicable_is_recorded(judged, model):
    record = judged(model, [CLEAN, line(Fake(refuse=True), LINF)], radii={"linf": LINF.eps})
    rows = record.of["linf/fake"].values()
    assert len(rows) == 60
    assert not any(row.applicable or row.broken for row in rows)
    assert not record.ran("linf/fake")


def test_a_batch_with_nobody_to_attack_does_not_make_an_attack_applicable(judged, model):
    images = pictures()
    images.labels[:1] = 1 - images.labels[:1]
    plan = [CLEAN, line(Fake(refuse=True), LINF, "probe")]
    record = judged(model, plan, images=images, radii={"linf": LINF.eps}, batch_size=1)
    assert sum(row.applicable for row in record.of["linf/fake"].values()) == 1  # the one that is wrong at first
    assert not record.ran("linf/fake")


def test_the_model_decides_not_the_attack(judged, model):
    record = judged(model, [CLEAN, line(Fake(claim=True), LINF)], radii={"linf": LINF.eps})
    assert record.worst("linf").percent == 100
    assert all(row.silent for row in record.of["linf/fake"].values())


def test_a_searcher_that_errs_hides_nothing(judged, model):
    """It calls everything broken at once; the attack is then run on the model itself."""
    hasty = case_of(model, searcher=Linear(-direction()))
    honest = judged(model)
    record = judged(hasty, folder="hasty")
    for norm in RADII:
        assert record.worst(norm).count == honest.worst(norm).count
    assert not any(row.silent for row in record.rows)


def test_what_a_copy_errs_in_is_searched_on_the_model_behind_it(judged, model):
    class Hasty(Linear):
        asked = 0

        def true(self, images):
            Hasty.asked += 1
            return model(images)

    record = judged(case_of(model, searcher=Hasty(-direction())), folder="hasty")
    for norm in RADII:
        assert record.worst(norm).count == judged(model).worst(norm).count
    assert Hasty.asked


def test_an_attack_that_leaves_its_ball_is_refused_by_name(judged, model):
    with pytest.raises(InputError, match=r"linf/fake returned images outside its ball: distance 0\.1"):
        judged(model, [CLEAN, line(Fake(push=0.1), LINF)], radii={"linf": LINF.eps})


def test_a_large_radius_does_not_trip_over_float32(judged, model):
    images = pictures(side=28)
    wide = ThreatModel("l2", 8.4)
    plan = [CLEAN, line(PGD(name="pgd", num_steps=20, path_ratio=20), wide, "published")]
    record = judged(Linear(direction(28)), plan, images=images, radii={"l2": 8.4})
    assert record.worst("l2").count == 0


def test_logits_that_are_not_finite_count_as_wrong(judged):
    def broken(images):
        logits = Linear(direction())(images)
        return torch.where((images.mean(dim=(1, 2, 3)) > 0.5)[:, None], torch.nan, logits)

    record = judged(broken, [CLEAN])
    assert {row.prediction == -1 for row in record.of["clean"].values()} == {True, False}
    assert record.clean.count == sum(row.prediction >= 0 for row in record.of["clean"].values())


def test_what_is_not_finite_at_first_is_not_attacked_into_a_right_answer(judged):
    def nervous(images):
        logits = Linear(direction())(images)
        whole = (images * 255 - (images * 255).round()).abs().amax(dim=(1, 2, 3)) < 1e-3  # natural images are
        return torch.where((whole & (images[:, 0, 0, 0] > 0.5))[:, None], torch.nan, logits)

    attack = line(PGD(name="pgd", num_steps=2, random_start=True), LINF, "published")
    record = judged(nervous, [CLEAN, attack], radii={"linf": LINF.eps})
    assert 0 < record.clean.count < record.clean.n
    assert record.after("linf/pgd").count <= record.clean.count
    assert all(record.of["linf/pgd"][example].prediction == -1 for example in record.wrong())


def test_a_model_that_returns_no_logits_is_refused(judged):
    with pytest.raises(InputError, match="logits"):
        judged(lambda images: images, [CLEAN])


def test_the_model_comes_back_as_it_was(judged):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.0), torch.nn.Linear(36, 2)).train()
    judged(net, [CLEAN])
    assert net.training
    assert all(parameter.requires_grad for parameter in net.parameters())


def test_what_a_stranger_calls_transform_is_left_alone(judged, tmp_path):
    class Stranger(Linear):
        def transform(self, photograph, size):
            raise AssertionError("nobody promised that this takes images")

    judged(Stranger(direction()), [CLEAN])
    assert "transformed" not in shards.read(tmp_path / "ledger/figures/clean/00000.safetensors")


def test_figures_of_a_few_examples_are_kept(judged, model, tmp_path):
    judged(model)
    clean = shards.read(tmp_path / "ledger/figures/clean/00000.safetensors")
    assert clean["image"].shape == (16, 1, 6, 6)
    attacked = shards.read(tmp_path / "ledger/figures/linf.pgd-published/00000.safetensors")
    assert attacked["trace"].shape == (16, 5)
    assert attacked["example"].tolist() == clean["example"].tolist()
    assert not (tmp_path / "ledger/figures/clean/00001.safetensors").exists()


RUN = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from evaluation_cases import *
from linocut.evaluation.run import evaluate
from linocut.evaluation.sample import Sample
model = Linear(direction())
import time
class Slow:
    def __call__(self, images):
        time.sleep(0.002)
        return model(images)
sample = Sample(size=60, n=60, batch_size=16)
evaluate(case_of(Slow()), SMALL_PLAN, sample, Path(sys.argv[1]), radii=RADII, settings={"suite": "test"},
         watch=lambda *_: print(1, flush=True))
"""


def test_killed_at_any_moment_a_resumed_run_equals_a_straight_one(judged, model, tmp_path, count):
    straight = judged(model)
    folder, here = tmp_path / "killed", os.path.dirname(__file__)
    for trial in range(count(2, 12)):
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", RUN, str(folder), here], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3 + 2 * trial):
            process.stdout.readline()
        time.sleep(0.003 * trial)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert not (folder / "rows.jsonl").exists() or trial > 5
    resumed = judged(model, folder="killed")
    assert timeless(resumed) == timeless(straight)


def test_a_second_run_on_the_folder_is_refused_while_the_first_goes_on(judged, model, tmp_path):
    seen = []

    def intrude(*_):
        if not seen:
            seen.append(1)
            with pytest.raises(InputError, match="is being written by process"):
                judged(model)

    judged(model, watch=intrude)
    assert seen


def test_every_claim_is_verified_and_every_falsehood_found(judged, model, tmp_path):
    record, folder = judged(model), tmp_path / "ledger"
    outcome = verify(folder, model, torch.device("cpu"))
    claims = 60 + sum(row.broken for row in record.rows)
    assert (outcome.claims, outcome.confirmed, outcome.failures) == (claims, claims, [])

    other = verify(folder, Linear(-direction()), torch.device("cpu"))
    assert any("classifies its image rightly" in failure for failure in other.failures)
    assert any(failure.startswith("clean") for failure in other.failures)

    path = next((folder / "images" / "linf.pgd-published").iterdir())
    shard = shards.read(path)
    shard["image"][0, 0, 0, 0] += 0.5
    shards.write(path, shard)
    failures = verify(folder, model, torch.device("cpu")).failures
    assert len(failures) == 1
    assert "not the one the row was made with" in failures[0]

    forged = folder / "rows.jsonl"
    from linocut.evaluation.rows import from_line, to_line

    digest = shards.digest(shard["image"][0])
    rows = [from_line(text) for text in forged.read_text().splitlines()]
    liar = (int(shard["example"][0]), "linf/pgd-published")
    rows = [replace(row, image=digest) if (row.example, row.entry) == liar else row for row in rows]
    forged.write_text("".join(map(to_line, rows)))
    assert "outside the ball" in verify(folder, model, torch.device("cpu")).failures[0]

    path.unlink()
    assert all("was not kept" in failure for failure in verify(folder, model, torch.device("cpu")).failures)


@pytest.mark.parametrize(("lean", "told"), [(1e-3, "close"), (0.5, "failures")])
def test_claims_that_rounding_decides_are_told_apart_from_false_ones(judged, model, tmp_path, lean, told):
    """Another machine's logits may favour the other class by a hair; by more than that the claim is false."""
    judged(model)

    def elsewhere(images):
        sides = lean * model(images).flip(1).sign()
        return torch.cat([sides, torch.full((len(images), 3), -5.0)], dim=1)  # the others give the scale

    outcome = verify(tmp_path / "ledger", elsewhere, torch.device("cpu"))
    assert len(getattr(outcome, told)) == outcome.claims > 60
    assert outcome.confirmed == 0
    assert len(outcome.close) + len(outcome.failures) == outcome.claims


def test_the_header_tells_all(judged, model, tmp_path):
    judged(model, settings={"model_hash": "abc"})
    header = json.loads((tmp_path / "ledger" / "header.json").read_text())
    assert header["settings"]["model_hash"] == "abc"
    assert header["settings"]["dimensions"] == 36
    assert header["entries"]["linf/pgd-margin"]["attack"]["num_steps"] == 5
    assert header["entries"]["l2/pgd-published"]["path"] == pytest.approx(2.5 * L2.eps)
    assert {"linocut", "torch", "python", "command"} <= set(header["made_with"])


def test_workers_default_to_one():
    assert Workers().first_does(lambda: 3) == 3
    Workers().wait()


class StrongBetweenLevels(Linear):
    """Right about every image that is not in whole levels, a linear model about the others."""

    def forward(self, images):
        whole = ((images * 255).round() / 255 - images).abs().flatten(1).amax(dim=1) < 1e-6
        right = super().forward(pictures().unit(slice(0, 16))[:1] + 0 * images)
        return torch.where(whole[:, None], super().forward(images), super().forward(images) * 0 + right.detach())


def test_what_stands_between_the_levels_is_asked_on_them(judged, tmp_path):
    """PGD never walks on them, so nothing that it returns breaks such a model; what it returns, rounded, does."""
    images = pictures()
    label = int(images.labels[0])
    images = replace(images, pixels=images.pixels[images.labels == label], labels=images.labels[images.labels == label])
    plain, cheat = Linear(direction()), StrongBetweenLevels(direction())
    radius = ThreatModel("linf", 0.05)
    attacks = [line(PGD(name="pgd-published", num_steps=5), radius, "published"), line(Push(name="push"), radius)]
    record = judged(cheat, [CLEAN, *attacks], images=images, radii={"linf": 0.05})
    assert not record.broken_by(["linf/pgd-published"]), "the published column is as it was published"
    rounded = record.broken_by(["linf/push"])
    assert rounded
    for row in record.of["linf/push"].values():
        assert row.quantised in (None, 1 - label)
    assert not verify(tmp_path / "ledger", cheat, torch.device("cpu")).failures
    bare = judged(plain, [CLEAN, *attacks], images=images, radii={"linf": 0.05}, folder="bare")
    assert record.worst("linf").count >= bare.worst("linf").count


@dataclass(frozen=True, kw_only=True)
class Push(Fake):
    """Goes against the linear model by nearly all of the radius, and stops between two levels."""

    def run(self, model, images, labels, threat, dice, starts=None):
        toward = direction().sign() * torch.where(labels == 0, 1.0, -1.0)[:, None, None, None]
        found = super().run(model, images, labels, threat, dice, starts)
        return found._replace(images=images + (threat.eps - 0.001) * toward)
