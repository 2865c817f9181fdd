import pytest
import torch

from linocut.attacks import PGD, Dice, ThreatModel
from linocut.errors import InputError


def one(model, image, label, threat, dice, row, attack):
    """The result of one example attacked alone."""
    rows = slice(row, row + 1)
    return attack.run(model, image[rows], label[rows], threat, dice.select(torch.tensor([row])))


@pytest.mark.parametrize("any_iterate", [False, True])
def test_every_iterate_is_in_ball_and_box(network, batch, threat, watched, any_iterate):
    images, labels, dice = batch
    model = watched(network)
    attack = PGD(num_steps=15, any_iterate=any_iterate, random_start=True)
    result = attack.run(model, images, labels, threat, dice)
    assert threat.contains(result.images, images).all()
    # Rows leave, so each iterate is held against the natural image nearest to it.
    seen = model.images
    natural = images[torch.cdist(seen.flatten(1), images.flatten(1)).argmin(dim=1)]
    assert threat.contains(seen, natural, slack=1e-6).all()
    assert threat.distance(seen, natural).max() > 0.99 * threat.eps


@pytest.mark.parametrize("saturated", [False, True], ids=["inside the box", "at the box"])
def test_a_linear_model_is_pushed_to_its_closed_form_optimum(linear, threat, saturated):
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(1, 3, 5, 6, generator=generator)
    images = torch.rand(8, 3, 5, 6, generator=generator)
    images = images.round() if saturated else images * 0.4 + 0.3
    model = linear(weight, bias=100.0)  # far from broken, so that only the climb counts
    result = PGD(num_steps=60, loss="margin", path_ratio=20).run(
        model, images, torch.zeros(8, dtype=torch.long), threat, Dice.of(0, 8)
    )
    if threat.norm == "linf":
        best = (images - threat.eps * weight.sign()).clamp(0, 1)
    elif saturated:  # the farthest allowed point downhill is the projection of one at infinity
        best = ThreatModel("l2", threat.eps).project(images - 1e4 * weight, images)
    else:
        best = images - threat.eps * weight / weight.norm()
    expected = -model(best)[:, 0]
    assert torch.allclose(result.loss_best, expected, atol=2e-3 * threat.eps)
    assert threat.distance(result.images, best).max() < 0.05 * threat.eps


def test_zero_eps_returns_the_input(network, batch, threat):
    images, labels, dice = batch
    result = PGD(num_steps=3, step_size=0.1, random_start=True).run(
        network, images, labels, ThreatModel(threat.norm, 0.0), dice
    )
    assert torch.equal(result.images, images)
    assert not result.broken.any()


@pytest.mark.parametrize("any_iterate", [False, True])
def test_results_do_not_depend_on_batch_mates_or_order(network, batch, threat, any_iterate):
    images, labels, dice = batch
    attack = PGD(num_steps=12, any_iterate=any_iterate, random_start=True)
    whole = attack.run(network, images, labels, threat, dice)
    assert 0 < whole.broken.sum() < len(images)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    moved = attack.run(network, images[order], labels[order], threat, dice.select(order))
    for name in ("images", "broken", "prediction", "loss_best", "steps", "queries"):
        assert torch.allclose(getattr(moved, name), getattr(whole, name)[order], atol=1e-6), name
    for row in (0, 7):
        alone = one(network, images, labels, threat, dice, row, attack)
        assert torch.allclose(alone.images[0], whole.images[row], atol=1e-6)
        assert alone.steps[0] == whole.steps[row]


def test_it_returns_the_iterate_of_highest_loss_start_included(network, batch, threat, watched):
    images, labels, dice = batch
    model = watched(network)
    result = PGD(num_steps=9, step_size=threat.eps).run(model, images, labels, threat, dice)
    assert len(model.seen) == 10  # one pass a step, and one for the last iterate
    losses = torch.stack(
        [torch.nn.functional.cross_entropy(network(x), labels, reduction="none") for x in model.seen], dim=1
    )
    best = losses.argmax(dim=1)
    assert torch.allclose(result.trace, losses, atol=1e-5)
    assert torch.allclose(result.loss_best, losses.amax(dim=1), atol=1e-5)
    assert torch.allclose(result.loss_start, losses[:, 0], atol=1e-5)
    assert torch.allclose(result.loss_end, losses[:, -1], atol=1e-5)
    picked = torch.stack(model.seen)[best, torch.arange(len(images))]
    assert torch.allclose(result.images, picked, atol=1e-6)
    assert torch.equal(result.broken, network(result.images).argmax(1) != labels)
    assert result.steps.tolist() == [9] * len(images)
    assert result.queries.tolist() == [10] * len(images)


def test_a_broken_example_leaves_and_says_when(network, batch, threat, watched):
    images, labels, dice = batch
    model = watched(network)
    result = PGD(num_steps=30, any_iterate=True).run(model, images, labels, threat, dice)
    sizes = [len(part) for part in model.seen]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == (~result.broken).sum() + (result.queries == 31)[result.broken].sum()
    assert sum(sizes) == result.queries.sum()
    assert torch.equal(result.broken, network(result.images).argmax(1) != labels)
    assert torch.equal((~result.trace.isnan()).sum(dim=1).int(), result.queries)
    assert not result.silent.any()


class Wavering:
    """Wrong at first at a loss of 0.74, then right at a loss of 1.03: three classes allow that."""

    def __init__(self):
        self.calls = 0

    def __call__(self, images):
        self.calls += 1
        logits = [0.0, 0.1, -9.0] if self.calls == 1 else [1.0, 0.9, 0.9]
        return torch.tensor([logits]) + 0 * images.sum()


def test_an_adversarial_iterate_that_is_not_returned_is_called_silent():
    given = (torch.full((1, 1, 1, 1), 0.6), torch.tensor([0]), ThreatModel("linf", 0.05), Dice.of(0, 1))
    published = PGD(num_steps=2).run(Wavering(), *given)
    assert published.silent.item() is True
    assert published.broken.item() is False
    worst = PGD(num_steps=2, any_iterate=True).run(Wavering(), *given)
    assert worst.broken.item() is True
    assert worst.silent.item() is False
    assert worst.queries.item() == 1


def test_starts_are_used_and_brought_into_the_ball(network, batch, threat, watched):
    images, labels, dice = batch
    model = watched(network)
    PGD(num_steps=1).run(model, images, labels, threat, dice, starts=torch.zeros_like(images))
    assert torch.allclose(model.seen[0], threat.project(torch.zeros_like(images), images), atol=1e-6)


def test_default_starts_are_random_for_linf_only(network, batch, threat, watched):
    images, labels, dice = batch
    model = watched(network)
    PGD(num_steps=1).run(model, images, labels, threat, dice)
    assert torch.equal(model.seen[0], images) == (threat.norm == "l2")


def test_a_model_without_gradient_or_with_nan_does_no_harm(batch, threat):
    images, labels, dice = batch
    for model in (
        lambda x: torch.nn.functional.one_hot(labels[: len(x)], 6).float(),
        lambda x: x.mean(dim=(2, 3)).repeat(1, 2) * torch.nan,
        lambda x: x.mean(dim=(2, 3)).repeat(1, 2).sub(2).sqrt(),
    ):
        result = PGD(num_steps=3).run(model, images, labels, threat, dice)
        assert threat.contains(result.images, images).all()


def test_a_pixel_whose_gradient_is_nan_does_not_stop_the_others(linear, threat):
    weight = torch.ones(1, 1, 3, 3)
    plain = linear(weight, bias=-4.49)

    def torn(x):
        return plain(x) + (x[:, :1, 0, 0] * 0).sqrt()  # adds 0, with a slope of 0 * infinity

    images, labels = torch.full((2, 1, 3, 3), 0.5), torch.zeros(2, dtype=torch.long)
    result = PGD(num_steps=10, random_start=False).run(torn, images, labels, threat, Dice.of(0, 2))
    assert result.broken.all()
    assert threat.contains(result.images, images).all()


def test_an_empty_batch_gives_an_empty_result(network, threat):
    for attack in (PGD(num_steps=2), PGD(num_steps=2, any_iterate=True)):
        empty = attack.run(network, torch.zeros(0, 3, 9, 12), torch.zeros(0, dtype=torch.long), threat, Dice.of(0, 0))
        assert len(empty.images) == len(empty.broken) == 0


def test_images_are_not_changed_and_weights_get_no_gradient(batch, threat):
    images, labels, dice = batch
    before = images.clone()
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 9 * 12, 6))
    PGD(num_steps=3).run(model, images, labels, threat, dice)
    assert torch.equal(images, before)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_large_batches_go_through_the_model_in_pieces_with_the_same_result(network, threat, watched):
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(300, 3, 9, 12, generator=generator)
    labels = network(images).argmax(dim=1)
    model = watched(network)
    dice = Dice.of(0, 300)
    whole = PGD(num_steps=2).run(model, images, labels, threat, dice)
    assert max(len(part) for part in model.seen) < 300
    tail = torch.arange(250, 300)
    part = PGD(num_steps=2).run(network, images[tail], labels[tail], threat, dice.select(tail))
    assert torch.allclose(part.images, whole.images[tail], atol=1e-6)


@pytest.mark.parametrize(
    "settings", [{"num_steps": 0}, {"step_size": 0.0}, {"path_ratio": float("nan")}, {"loss": "hinge"}]
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(InputError):
        PGD(**settings)
