import pytest
import torch

from linocut.attacks import APGD, Dice, NotApplicable, TargetedAPGD, ThreatModel
from linocut.attacks.apgd import _Pace
from linocut.errors import InputError


def checkpoints(steps):
    """The steps after which a pace looks back."""
    loss = torch.zeros(1)
    pace = _Pace(APGD(num_steps=steps), loss, 1.0)
    return [step for step in range(1, steps + 1) if pace.judge(loss, loss) is not None]


def test_checkpoints_are_the_published_ones():
    # 0.22, then gaps of 0.19, 0.16, 0.13, 0.10, 0.07, 0.06, 0.06 of 100 steps
    assert checkpoints(100) == [22, 41, 57, 70, 80, 87, 93, 99]


def test_a_step_is_halved_when_the_loss_stops_rising_and_kept_while_it_rises():
    settings, start = APGD(num_steps=100), torch.tensor([0.0, 0.0, 0.0])
    pace = _Pace(settings, start, 0.5)
    best = start
    for step in range(1, 42):
        # rising always; never; in every second step
        loss = torch.tensor([float(step), 0.0, float(step if step % 2 else -1)])
        best = torch.maximum(best, loss)
        back = pace.judge(loss, best)
        if step == 22:
            assert back.tolist() == [False, True, True]
    assert pace.size.flatten().tolist() == [1.0, 0.25, 0.25]


def test_a_stuck_best_loss_halves_even_while_the_loss_oscillates_upwards():
    pace = _Pace(APGD(num_steps=100), torch.tensor([0.0]), 0.5)
    pace.gap, pace.halved = 4, torch.tensor([False])
    pace.best_at_check = torch.tensor([9.0])
    for loss in (1.0, 2.0, 3.0, 4.0):  # rising, but below the best of the last checkpoint
        back = pace.judge(torch.tensor([loss]), torch.tensor([9.0]))
    assert back.tolist() == [True]


def test_a_linear_model_is_pushed_to_its_optimum(linear, threat):
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(1, 3, 5, 6, generator=generator)
    images = torch.rand(8, 3, 5, 6, generator=generator) * 0.4 + 0.3
    dual = weight.abs().sum() if threat.norm == "linf" else weight.norm()
    for loss in ("cross_entropy", "margin"):
        model = linear(weight, bias=0.5)
        labels = torch.zeros(8, dtype=torch.long)
        result = APGD(loss=loss, any_iterate=False).run(model, images, labels, threat, Dice.of(0, 8))
        margin = -(model(images) - threat.eps * dual)[:, 0]
        assert torch.allclose(-model(result.images)[:, 0], margin, atol=3e-3 * threat.eps * dual.item())


def test_it_finds_a_peak_that_steps_of_fixed_size_jump_over(threat):
    """A loss that falls off on every side of a point deep inside the ball: only shrinking steps reach it."""
    images = torch.full((4, 1, 4, 4), 0.5)
    offset = torch.randn(4, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    peak = images + threat.steepest(offset) * threat.eps * 0.5

    def model(x):
        fall = ((x - peak[: len(x)]) / threat.eps).square().sum(dim=(1, 2, 3))
        return torch.stack([fall + 1, torch.zeros_like(fall)], dim=1)

    labels = torch.zeros(4, dtype=torch.long)
    result = APGD(loss="margin").run(model, images, labels, threat, Dice.of(0, 4))
    assert not result.broken.any()
    assert (result.loss_best > -1.02).all()
    assert result.loss_best.mean() > result.loss_start.mean() + 0.2


def test_every_iterate_is_in_ball_and_box_and_is_counted(network, batch, threat, watched):
    images, labels, dice = batch
    for attack in (APGD(num_steps=20), TargetedAPGD(num_steps=8, num_targets=3)):
        model = watched(network)
        result = attack.run(model, images, labels, threat, dice)
        seen = model.images
        natural = images[torch.cdist(seen.flatten(1), images.flatten(1)).argmin(dim=1)]
        assert threat.contains(seen, natural, slack=1e-6).all()
        assert len(seen) == result.queries.sum()
        assert torch.equal(result.broken, network(result.images).argmax(1) != labels)


def test_results_do_not_depend_on_batch_mates(network, batch, threat):
    images, labels, dice = batch
    for attack in (APGD(num_steps=12, loss="dlr"), TargetedAPGD(num_steps=6, num_targets=2)):
        whole = attack.run(network, images, labels, threat, dice)
        rows = torch.tensor([9, 2, 17])
        part = attack.run(network, images[rows], labels[rows], threat, dice.select(rows))
        assert torch.allclose(part.images, whole.images[rows], atol=1e-6)
        assert torch.equal(part.steps, whole.steps[rows])


def test_it_is_as_strong_as_pgd(network, batch, threat, strong_pgd):
    images, labels, dice = batch
    plain = strong_pgd.run(network, images, labels, threat, dice).broken.sum()
    assert APGD(num_steps=50).run(network, images, labels, threat, dice).broken.sum() >= plain - 1
    assert TargetedAPGD(num_steps=30).run(network, images, labels, threat, dice).broken.sum() >= plain


def test_targets_are_tried_from_the_likeliest_and_survivors_only_go_on(network, batch, watched):
    images, labels, dice = batch
    threat = ThreatModel("linf", 0.001)
    result = TargetedAPGD(num_steps=4, num_targets=9).run(network, images, labels, threat, dice)
    standing = ~result.broken
    assert standing.any()
    # One ranking pass, then five passes for each of the five wrong classes.
    assert (result.queries[standing] == 1 + 5 * 5).all()
    assert (result.queries[result.broken] < 1 + 5 * 5).all()


def test_zero_eps_empty_batches_and_few_classes(network, batch, linear, threat):
    images, labels, dice = batch
    nothing = ThreatModel(threat.norm, 0.0)
    for attack in (APGD(num_steps=3), TargetedAPGD(num_steps=3, num_targets=2)):
        assert torch.equal(attack.run(network, images, labels, nothing, dice).images, images)
        empty = attack.run(network, images[:0], labels[:0], threat, Dice.of(0, 0))
        assert len(empty.images) == 0
    for attack in (APGD(num_steps=3, loss="dlr"), TargetedAPGD(num_steps=3)):
        with pytest.raises(NotApplicable):
            attack.run(linear(torch.ones(1, 3, 9, 12)), images, labels.clamp(max=1), threat, dice)
    with pytest.raises(InputError):
        APGD(num_steps=0)
