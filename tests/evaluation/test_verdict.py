"""An evaluation from Python says what the command line says, and leaves the model as it was."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from evaluation_cases import GIVEN, IMAGES, LABELS, MODEL, direction, verdict_of
from torch import nn

import linocut
from linocut.attacks import PGD, ThreatModel
from linocut.errors import InputError
from linocut.evaluation.record import Record
from linocut.evaluation.stranger import returned_by
from linocut.evaluation.verify import replay


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    return verdict_of(tmp_path_factory.mktemp("verdict"), norm="both")


def test_the_worst_case_is_the_closed_form(both):
    weight = direction()
    margin = ((IMAGES - 0.5) * weight).flatten(1).sum(dim=1).abs()
    reach = 0.02 * weight.abs().sum()
    assert both.clean.count == both.clean.n == 40
    assert both.worst("linf").count == int((margin > reach).sum()) < 40
    assert both.worst("linf").count <= both.published("linf").count
    assert both.worst("l2").count <= both.worst("linf").count  # its ball holds the corner


def test_the_images_are_those_that_broke_it(both):
    for norm in ("linf", "l2"):
        which, images = both.adversarial(norm)
        assert len(which) == 40 - both.worst(norm).count > 0
        assert which.tolist() == sorted(set(which.tolist()))
        assert bool((MODEL(images).argmax(1) != LABELS[which]).all())
        assert bool(ThreatModel(norm, both.record.norms[norm]).contains(images, IMAGES[which], slack=1e-6).all())
    assert both.verify().failures == []
    assert both.verify().confirmed > 40


def test_nothing_broken_is_no_image(tmp_path):
    which, images = verdict_of(tmp_path, eps=1e-6).adversarial("linf")
    assert len(which) == len(images) == 0


def test_it_is_shown_as_a_table(both):
    lines = repr(both).splitlines()
    assert lines[0].split() == ["clean", "100.00", "%", "91.19", "to", "100.00", "40"]
    assert any(line.startswith("L-inf 0.02") and "worst case" in line for line in lines)
    assert any(line.startswith("warn  transfer (L2)") for line in lines)
    assert both.as_json()["norms"]["linf"]["worst"]["count"] == both.worst("linf").count
    json.dumps(both.as_json())


def test_another_norm_is_refused(tmp_path):
    with pytest.raises(InputError, match="'l2' was not judged: linf were"):
        verdict_of(tmp_path).worst("l2")


@pytest.mark.parametrize(
    "images",
    [
        GIVEN.pixels,
        GIVEN.pixels.numpy(),
        IMAGES.double(),
        IMAGES.half(),
        IMAGES.numpy(),
        IMAGES.clone().requires_grad_(),
    ],
    ids=["uint8", "uint8 array", "float64", "float16", "array", "with a gradient"],
)
def test_any_form_of_the_same_images_gives_the_same_rows(both, tmp_path, images):
    again = verdict_of(tmp_path, images=images, labels=LABELS.tolist(), norm="both")
    assert [row.prediction for row in again.record.rows] == [row.prediction for row in both.record.rows]
    assert again.record.settings["data_hash"] == both.record.settings["data_hash"]


@pytest.mark.parametrize(
    ("images", "labels", "told"),
    [
        (IMAGES * 255, LABELS, "divide by 255"),
        (IMAGES * 2 - 1, LABELS, r"give \(images \+ 1\) / 2"),
        ((IMAGES - 0.5) / 0.1, LABELS, "normalised by mean and std"),
        (IMAGES * 1e6, LABELS, "scale them"),
        (IMAGES + 0.001, LABELS, "no whole grey levels"),
        (IMAGES * torch.nan, LABELS, "from nan to nan"),
        (IMAGES[0], LABELS, r"needs \[None\]"),
        (torch.rand(40, 6, 6, 3), LABELS, r"permute\(0, 3, 1, 2\)"),
        (GIVEN.pixels.int(), LABELS, "whole levels as uint8"),
        ("pictures", LABELS, "got a str|got images of"),
        (IMAGES, LABELS[:3], "40 images and 3 labels"),
        (IMAGES[:0], LABELS[:0], "at least one"),
        (IMAGES, nn.functional.one_hot(LABELS, 2), r"labels.argmax\(1\)"),
        (IMAGES, LABELS[:, None], r"labels\[:, 0\]"),
        (IMAGES, LABELS.float(), r"labels.long\(\)"),
        (IMAGES.to("meta"), LABELS, "no array of numbers"),
        (IMAGES, LABELS - 1, "got a label of -1"),
    ],
)
def test_what_is_no_batch_of_images_is_refused_with_a_guess(tmp_path, images, labels, told):
    with pytest.raises(InputError, match=told):
        verdict_of(tmp_path / "out", images=images, labels=labels)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"eps": None}, "no radius is known for 'images'"),
        ({"norm": "l1"}, "norm must be"),
        ({"precision": "half"}, "precision must be"),
        ({"suite": "quick"}, "no suite or attack 'quick'"),
        ({"suite": [3]}, "a list of attacks"),
        ({"model": "runs/model"}, "model must be a function of images, got a str"),
        ({"twin": 3}, "twin must be a function"),
        ({"n": 41}, "between 1 and the 40"),
        ({"n": 3.0}, "n must be a whole number, got 3.0"),
        ({"eps": "8/255"}, "eps must be a number such as 8 / 255"),
    ],
)
def test_other_mistakes_are_told(tmp_path, more, told):
    with pytest.raises(InputError, match=told):
        verdict_of(tmp_path / "out", **more)


def test_a_module_is_left_as_it_was(tmp_path):
    model = nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(36, 2)).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    verdict = verdict_of(tmp_path, model)
    assert all(module.training for module in model.modules())
    assert all(weight.requires_grad for weight in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert verdict.record.settings["draws"] == 1  # dropout was off
    assert verdict.verify().failures == []


def test_own_attacks_run_on_what_is_left(tmp_path):
    longer = PGD(name="mine", num_steps=5, any_iterate=True)
    verdict = verdict_of(tmp_path, suite=[longer], attack="pgd-ce-1")
    assert {"linf/mine", "linf/pgd-ce-1"} <= verdict.record.entries.keys()
    assert verdict.record.settings["suite"] == "mine"


def few_levels(images):
    return torch.from_numpy((images.numpy() * 3).round() / 3)


def test_a_preprocessing_in_numpy_is_passed_straight_through(tmp_path):
    verdict = verdict_of(tmp_path, preprocess=few_levels, twin=MODEL, eps=0.1, suite="fast")
    assert verdict.worst("linf").count < verdict.clean.count
    assert verdict.record.settings["preprocess"].endswith("test_verdict:few_levels")
    assert not any(finding.code == "transfer" and "skipped" in finding.sentence for finding in verdict.findings)


def test_the_same_call_goes_on_and_another_is_refused(both):
    again = verdict_of(both.folder, norm="both")
    assert list(again.record.rows) == list(both.record.rows)
    with pytest.raises(InputError, match="was made with"):
        verdict_of(both.folder, norm="both", seed=1)


def test_the_ledger_is_one_like_any_other(both):
    assert Record.read(both.folder).worst("l2").count == both.worst("l2").count
    with pytest.raises(InputError, match="Linear in memory: name it with --model"):
        replay(both.folder)


def test_labels_may_leave_classes_out(tmp_path):
    chosen = LABELS == 0
    assert verdict_of(tmp_path, images=IMAGES[chosen], labels=np.asarray(LABELS[chosen])).clean.n == int(chosen.sum())


def test_a_function_is_judged_where_the_images_lie(tmp_path):
    assert verdict_of(tmp_path, lambda images: MODEL(images)).device == IMAGES.device


def examples_of_the_page():
    page = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_the_example_of_the_page_runs(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    _, example = examples_of_the_page()
    monkeypatch.chdir(tmp_path)
    values: dict = {}
    exec(compile(example, "evaluation.md", "exec"), values)
    assert len(values["which"]) == len(values["images"]) <= values["verdict"].clean.count


def test_the_defence_of_the_page_can_be_judged(tmp_path, monkeypatch):
    first, _ = examples_of_the_page()
    (tmp_path / "mydefence.py").write_text(first)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    model = returned_by("mydefence:my_model")
    assert (
        verdict_of(tmp_path / "out", model, torch.rand(8, 1, 8, 8).mul(255).round() / 255, torch.arange(8)).clean.n == 8
    )


def test_numbers_of_any_kind_will_do(both, tmp_path):
    few = verdict_of(tmp_path, eps=torch.tensor(0.02), n=np.int64(7), labels=LABELS.to(torch.uint16), norm="both")
    assert few.clean.n == 7
    which, images = few.adversarial("l2")
    assert 0 < len(which) <= 7
    assert bool((MODEL(images).argmax(1) != LABELS[which]).all())  # by their places among all forty


def test_arrays_that_are_read_only_or_run_backwards_will_do(both, tmp_path):
    frozen = IMAGES.numpy().copy()
    frozen.setflags(write=False)
    assert verdict_of(tmp_path / "a", images=frozen, norm="both").worst("l2").count == both.worst("l2").count
    mirrored = verdict_of(tmp_path / "b", images=IMAGES.numpy()[:, :, ::-1, ::-1], model=lambda x: MODEL(x.flip(2, 3)))
    assert mirrored.worst("linf").count == both.worst("linf").count


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_it_sees_gradients_whatever_it_is_called_in(both, tmp_path, mode):
    with mode():
        verdict = verdict_of(tmp_path, images=IMAGES.clone(), norm="both")
    assert verdict.worst("l2").count == both.worst("l2").count
    assert "zero-gradient" not in verdict.failed


class RandomBeyond(nn.Module):
    """Noise in every image but the brightest."""

    def forward(self, images):
        noise = 0.05 * torch.randn_like(images) * (images.amax(dim=(1, 2, 3), keepdim=True) < IMAGES.max())
        return MODEL(images + noise)


def test_a_random_model_verifies_by_its_expectation(tmp_path):
    brightest = int(IMAGES.flatten(1).amax(dim=1).argmax())
    order = [brightest, *(i for i in range(40) if i != brightest)]
    verdict = verdict_of(tmp_path, RandomBeyond(), images=IMAGES[order], labels=LABELS[order], n=10)
    assert verdict.record.settings["draws"] == 20
    assert verdict.verify().failures == []


def test_a_preprocessing_in_training_mode_is_left_as_it_was(tmp_path):
    front = nn.Sequential(nn.BatchNorm2d(1), nn.Hardtanh(0, 1)).train()
    verdict_of(tmp_path, preprocess=front)
    assert front.training
    assert int(front[0].num_batches_tracked) == 0


def test_a_refused_growth_leaves_the_ledger_as_it_was(tmp_path):
    factor = [1.0]

    def model(images):
        return MODEL(images) * factor[0]

    verdict_of(tmp_path, model)
    before = (tmp_path / "header.json").read_bytes()
    factor[0] = 1e-3
    with pytest.raises(InputError, match="gave other logits"):
        verdict_of(tmp_path, model, attack="pgd-ce-1")
    assert (tmp_path / "header.json").read_bytes() == before
    factor[0] = 1.0
    assert "linf/pgd-ce-1" in verdict_of(tmp_path, model, attack="pgd-ce-1").record.entries


def test_a_preprocessing_is_named_only_if_it_can_be_found(tmp_path):
    assert verdict_of(tmp_path / "a", preprocess=few_levels).record.settings["preprocess"].endswith(":few_levels")
    verdict = verdict_of(tmp_path / "b", preprocess=lambda images: few_levels(images))
    assert verdict.record.settings["preprocess"].endswith("<lambda> in memory")
    assert verdict.verify().failures == []
    with pytest.raises(InputError, match=r"use verdict.verify\(\) in Python"):
        replay(verdict.folder, "test_verdict:MODEL")


def test_it_is_found_by_those_who_look():
    assert "evaluate" in dir(linocut)
