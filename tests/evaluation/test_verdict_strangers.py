"""Models and attacks of strangers, judged from Python: what errs or cheats is told, what is odd but sound is judged."""

import re
from dataclasses import replace

import pytest
import torch
from evaluation_cases import LABELS, MODEL, Linear, direction, verdict_of
from torch import nn

from linocut.attacks.attack import Result
from linocut.errors import InputError
from linocut.evaluation.pictures import Pictures
from linocut.evaluation.rows import to_line


class Unsure(nn.Module):
    """Random, with statistics of batches that a forward in training mode would move."""

    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.BatchNorm2d(1), Linear(direction())

    def forward(self, images):
        return self.linear(self.norm(images + 0.05 * torch.randn_like(images)))


class Numpys(nn.Module):
    """Takes no gradient, and is another model in training mode."""

    def __init__(self):
        super().__init__()
        self.drop, self.linear = nn.Dropout(0.5), Linear(direction())

    def forward(self, images):
        return self.linear(self.drop(torch.from_numpy(images.numpy())))


@pytest.mark.parametrize("model", [Unsure, Numpys])
def test_a_new_module_verifies_and_stays_as_it_was(tmp_path, model):
    made = model()
    verdict = verdict_of(tmp_path, model=made, suite="fast")
    found = verdict.verify()
    assert found.failures == []
    assert found.confirmed == found.claims > 40
    assert made.training
    assert model is Numpys or made.norm.num_batches_tracked == 0


def test_images_that_a_second_look_saves_are_not_given(tmp_path):
    verdict = verdict_of(tmp_path, model=Unsure(), suite="fast")
    which, _ = verdict.adversarial("linf")
    pictures, names = Pictures.of(tmp_path), verdict.record.counting("linf")
    shards = [pictures.adversarial(name, batch) for name in names for batch in pictures.batches(name)]
    broken = verdict.record.broken_by(names)
    assert set(which.tolist()) == broken
    assert {example for shard in shards for example in shard["example"].tolist()} > broken


def in_place(images, labels):
    images += 0.1
    images.clamp_(0, 1)
    return images


def other_labels(images, labels):
    labels += 1
    return images


class Own:
    """An attack of one's own, whose result is what `does` makes of copies or of what it is given."""

    name = "own"

    def __init__(self, does):
        self.does = does

    def run(self, model, images, labels, threat, dice, starts=None):
        moved = self.does(images, labels)
        nothing = torch.zeros(len(images))
        count, no = nothing.int(), nothing.bool()
        kept = moved if isinstance(moved, torch.Tensor) else images
        made = Result(kept, no, labels, nothing, nothing, nothing, count, count, None, no)
        return made if isinstance(moved, torch.Tensor) else moved


@pytest.mark.parametrize(
    ("does", "told"),
    [
        (in_place, "outside its ball"),
        (lambda images, labels: (images, labels), "own returned a tuple"),
        (lambda images, labels: images.double(), "own returned images .*float64, wanted .*float32"),
        (lambda images, labels: images[:3], r"own returned images \(3, "),
        (lambda images, labels: images * torch.nan, "hold NaN"),
    ],
)
def test_an_own_attack_that_cheats_or_errs_is_told(tmp_path, does, told):
    with pytest.raises(InputError, match=told):
        verdict_of(tmp_path, suite=[Own(does)])


def test_an_own_attack_moves_no_labels(tmp_path):
    assert verdict_of(tmp_path, suite=[Own(other_labels)], eps=1e-4).worst("linf").count == 40


class Tiring(nn.Module):
    """Another model after some calls."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, images):
        self.calls += 1
        return MODEL(images) if self.calls < 60 else -MODEL(images)


def test_a_model_that_changes_meanwhile_is_told(tmp_path):
    with pytest.raises(InputError, match="keeps something between calls"):
        verdict_of(tmp_path, model=Tiring(), suite="fast")


def test_rows_without_their_header_are_nobodys(tmp_path):
    verdict_of(tmp_path)
    (tmp_path / "header.json").unlink()
    with pytest.raises(InputError, match=r"holds rows\.jsonl of a ledger whose header\.json is gone"):
        verdict_of(tmp_path, model=Linear(-direction()))


def test_a_kept_image_speaks_against_rows_that_deny_it(tmp_path):
    verdict = verdict_of(tmp_path)
    assert verdict.worst("linf").count < 40
    rows = [
        replace(row, broken=False, prediction=row.label, image=None) if row.broken else row
        for row in verdict.record.rows
    ]
    (tmp_path / "rows.jsonl").write_text("".join(map(to_line, rows)))
    denied = [told for told in verdict.verify().failures if "its row denies it" in told]
    assert len(denied) == 40 - verdict.worst("linf").count


def test_a_model_that_guesses_is_said_to(tmp_path):
    verdict = verdict_of(tmp_path, labels=1 - LABELS)
    assert verdict.clean.count == 0
    assert "not shown to be better than chance (1 in 2) on 40 images" in repr(verdict)
    assert verdict.failed == []
    assert {finding.status for finding in verdict.findings if finding.code == "black-box"} <= {"not applicable"}
    assert "chance" not in repr(verdict_of(tmp_path / "right"))


def test_finds_that_a_detector_rejected_are_counted(tmp_path):
    class Detector(nn.Module):
        def forward(self, images):
            moved = (images * 255 - (images * 255).round()).abs().amax(dim=(1, 2, 3))
            return torch.cat([MODEL(images), 100 * (moved[:, None] - 0.01)], dim=1)

    verdict = verdict_of(tmp_path, model=Detector())
    assert verdict.worst("linf").count < 40
    assert re.search(r"L-inf: \d+ of the \d+ images that fell were given class 2, which no label has", repr(verdict))


def test_classes_that_no_label_has_are_no_rejection_where_there_are_several(tmp_path):
    def model(images):
        return torch.cat([MODEL(images), MODEL(images) - 0.05], dim=1)

    assert "which no label has" not in repr(verdict_of(tmp_path, model=model))


class Views(nn.Module):
    """Takes views of what its convolution gives, as the networks of many tutorials do."""

    def __init__(self):
        super().__init__()
        self.conv, self.last = nn.Conv2d(3, 4, 3), nn.Linear(4 * 16, 2)

    def forward(self, images):
        return self.last(self.conv(images).view(-1, 4 * 16))


class ViewedBackwards(nn.Module):
    """Takes a view in its backward alone."""

    class Straight(torch.autograd.Function):
        @staticmethod
        def forward(ctx, images):
            return images.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient.view(len(gradient), -1).view_as(gradient)

    def __init__(self):
        super().__init__()
        self.conv, self.last = nn.Conv2d(3, 4, 3), nn.Linear(4 * 16, 2)

    def forward(self, images):
        return self.last(self.conv(self.Straight.apply(images)).flatten(1))


@pytest.mark.parametrize(
    "made", [Views, ViewedBackwards, lambda: lambda x: Linear(direction())(x.view(-1, 3, 6, 6)[:, :1])]
)
def test_views_of_colour_features_are_judged(tmp_path, made):
    torch.manual_seed(0)
    model = made()
    images = torch.randint(0, 256, (30, 3, 6, 6), dtype=torch.uint8)
    with torch.no_grad():
        labels = model(images / 255).argmax(dim=1)
    verdict = verdict_of(tmp_path, model=model, images=images, labels=labels)
    assert verdict.clean.count == 30
    assert verdict.verify().failures == []
