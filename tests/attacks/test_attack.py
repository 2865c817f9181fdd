import pytest
import torch

from linocut.attacks import APGD, PGD, ChenLoop, Dice, RandomNoise, Square, TargetedAPGD, ThreatModel
from linocut.attacks.attack import Result, merged
from linocut.errors import InputError


def result(broken, loss, silent=None):
    count = len(broken)
    flags, losses = torch.tensor(broken), torch.tensor(loss)
    return Result(
        images=losses.view(-1, 1, 1, 1),
        broken=flags,
        prediction=flags.long(),
        loss_start=losses,
        loss_best=losses,
        loss_end=losses,
        steps=torch.ones(count, dtype=torch.int32),
        queries=torch.full((count,), 2, dtype=torch.int32),
        trace=None,
        silent=torch.tensor(silent or [False] * count),
    )


def test_merging_prefers_broken_then_the_higher_loss_and_adds_up_the_cost():
    first = result([False, True, False, False], [1.0, 1.0, 5.0, 1.0], silent=[True, False, False, False])
    second = result([True, False, False], [0.5, 9.0, 2.0])
    both = merged(first, second, torch.tensor([0, 1, 2]))
    assert both.broken.tolist() == [True, True, False, False]
    assert both.loss_best.tolist() == [0.5, 1.0, 5.0, 1.0]
    assert both.images.flatten().tolist() == both.loss_best.tolist()
    assert both.prediction.tolist() == [1, 1, 0, 0]
    assert both.steps.tolist() == [2, 2, 2, 1]
    assert both.queries.tolist() == [4, 4, 4, 2]
    assert not both.silent.any()  # what was silent is now broken
    still = merged(first, result([False], [0.0]), torch.tensor([3]))
    assert still.silent.tolist() == [True, False, False, False]
    assert first.loss_best.tolist() == [1.0, 1.0, 5.0, 1.0]  # not changed


ATTACKS = [PGD(), APGD(), TargetedAPGD(), Square(), RandomNoise(), ChenLoop()]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: type(attack).__name__)
@pytest.mark.parametrize(
    ("images", "labels", "told"),
    [
        (torch.full((2, 1, 4, 4), 200.0), torch.zeros(2, dtype=torch.int64), "values from 200 to 200: divide by 255"),
        (torch.full((2, 1, 4, 4), -0.1), torch.zeros(2, dtype=torch.int64), "or clamp"),
        (torch.full((2, 1, 4, 4), torch.nan), torch.zeros(2, dtype=torch.int64), "values from nan"),
        (torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64), "got torch.uint8"),
        (torch.zeros(2, 1, 4, 4, dtype=torch.bfloat16), torch.zeros(2, dtype=torch.int64), "got torch.bfloat16"),
        (torch.zeros(2, 1, 4, 4, requires_grad=True), torch.zeros(2, dtype=torch.int64), "detach"),
        (torch.zeros(1, 4, 4), torch.zeros(1, dtype=torch.int64), r"got torch.float32 \(1, 4, 4\)"),
        (torch.zeros(2, 1, 4, 4), torch.zeros(2, dtype=torch.int32), "labels must be int64"),
        (torch.zeros(2, 1, 4, 4), torch.zeros(3, dtype=torch.int64), r"labels must be int64 \(2,\)"),
    ],
)
def test_what_are_no_images_in_the_unit_range_with_labels_is_refused(attack, images, labels, told):
    with pytest.raises(InputError, match=told):
        attack.run(lambda x: x.flatten(1)[:, :3], images, labels, ThreatModel("linf", 0.1), Dice.of(0, len(images)))
