"""The update rule: ATTA's published loop, replayed by plain code that shares nothing with the trainer."""

from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy, kl_div, linear, log_softmax, softmax

from linocut.attacks import ThreatModel
from linocut.training.epochs import EpochPlan, Ownership
from linocut.training.objectives import climb
from linocut.training.run import make_trainer
from linocut.training.schedule import learning_rate
from linocut.training.streams import stream
from linocut.training.world import World

from .conftest import make_config, make_images

CPU = torch.device("cpu")


def trainer_for(config, images, **keywords):
    own = Ownership(num_examples=len(images.labels), shards=config.shards)
    return make_trainer(config, images, own, CPU, World(), Path("unused"), False, **keywords), own


class PublishedATTA:
    """ATTA as published: image by image, lr 0.1, and a loss divided by the batch size twice."""

    def __init__(self, weights, images, *, lr, weight_decay, eps, step, k, pad):
        self.w = [value.detach().clone().requires_grad_() for value in weights]
        self.buffers = [None] * len(self.w)
        self.lr, self.weight_decay, self.eps, self.step_size, self.k = lr, weight_decay, eps, step, k
        n, c, h, w = images.shape
        self.natural = torch.full((n, c, h + 2 * pad, w + 2 * pad), 0.5)
        self.natural[:, :, pad : pad + h, pad : pad + w] = images
        self.stored = self.natural.clone()

    def logits(self, x):
        return linear(torch.relu(linear(x.reshape(len(x), -1), self.w[0], self.w[1])), self.w[2], self.w[3])

    def reset(self, noise):
        self.stored = self.natural + 0.001 * noise

    def step(self, ids, tops, lefts, flips, labels, side):
        naturals, starts = [], []
        for i, top, left, flip in zip(ids, tops, lefts, flips, strict=True):
            for canvas, into in ((self.natural, naturals), (self.stored, starts)):
                crop = canvas[i, :, top : top + side, left : left + side]
                into.append(crop.flip(2) if flip else crop)
        natural, x = torch.stack(naturals), torch.stack(starts)
        for _ in range(self.k):
            x = x.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(cross_entropy(self.logits(x), labels), x)
            x = x.detach() + self.step_size * gradient.sign()
            x = torch.minimum(torch.maximum(x, natural - self.eps), natural + self.eps).clamp(0, 1)
        batch = len(ids)
        loss = cross_entropy(self.logits(x.detach()), labels, reduction="sum") / batch / batch
        gradients = torch.autograd.grad(loss, self.w)
        with torch.no_grad():
            for j, (weight, gradient) in enumerate(zip(self.w, gradients, strict=True)):
                change = gradient + self.weight_decay * weight
                self.buffers[j] = change if self.buffers[j] is None else 0.9 * self.buffers[j] + change
                weight -= self.lr * self.buffers[j]
        for i, top, left, flip, result in zip(ids, tops, lefts, flips, x.detach(), strict=True):
            self.stored[i, :, top : top + side, left : left + side] = result.flip(2) if flip else result
        return loss.item() * batch


def test_fifty_steps_equal_the_published_rule():
    images, batch = make_images(48, channels=3), 8
    config = make_config(
        batch_size=batch,
        learning_rate=0.1 / batch,
        weight_decay=2e-4 * batch,
        num_steps=3,
        epochs=9,
        reset_every=3,
    )
    trainer, own = trainer_for(config, images)
    weights = [trainer.network.get_parameter(n) for n in ("hidden.weight", "hidden.bias", "fc.weight", "fc.bias")]
    published = PublishedATTA(
        weights, images.pixels.float() / 255, lr=0.1, weight_decay=2e-4, eps=0.1, step=0.04, k=3, pad=1
    )
    per_epoch = 6
    for step in range(50):
        epoch, within = divmod(step, per_epoch)
        if within == 0:
            plan = EpochPlan(config, own, epoch, (6, 6), CPU)
            if epoch % 3 == 0:
                trainer.start_segment(own, epoch)
                published.reset(torch.randn(48, 3, 8, 8, generator=stream(config.seed, "noise", epoch, 0)))
        drawn = plan.batch(within)
        trainer.set_turn(step, learning_rate(config, step, per_epoch))
        published.lr = 0.1 * (0.1 if epoch >= 3 else 1)
        rows, columns = drawn.windows.rows, drawn.windows.columns
        flips = columns[:, 0] > columns[:, 1]
        labels = images.labels[drawn.examples]
        loss = trainer.step(drawn)[0] / batch
        expected = published.step(drawn.examples, rows[:, 0], columns.min(dim=1).values, flips, labels, 6)
        assert loss.item() == pytest.approx(expected, abs=1e-6)
    for mine, theirs in zip(weights, published.w, strict=True):
        torch.testing.assert_close(mine.detach(), theirs.detach(), atol=1e-6, rtol=0)
    stored = trainer.canvas.change + published.natural
    torch.testing.assert_close(stored, published.stored, atol=1e-6, rtol=0)


def test_the_wrong_equivalence_is_told_apart():
    """The replay can fail: with the loss divided once only, twenty steps end elsewhere."""
    images = make_images(48, channels=3)
    trainer, own = trainer_for(make_config(learning_rate=0.1, weight_decay=2e-4, reset_every=0), images)
    other, _ = trainer_for(make_config(learning_rate=0.1 / 8, weight_decay=2e-4 * 8, reset_every=0), images)
    for each in (trainer, other):
        each.start_segment(own, 0)
        plan = EpochPlan(each.config, own, 0, (6, 6), CPU)
        for step, batch in enumerate(plan.batches()):
            each.set_turn(step, each.config.learning_rate)
            each.step(batch)
    gap = (trainer.network.fc.weight - other.network.fc.weight).abs().max().item()
    assert gap > 1e-3


def test_attack_stays_in_ball_and_box_and_raises_the_loss(images):
    trainer, own = trainer_for(make_config(num_steps=5), images)
    trainer.start_segment(own, 0)
    batch = EpochPlan(trainer.config, own, 0, (6, 6), CPU).batch(0)
    natural, start = trainer.canvas.cut(batch.examples, batch.windows)
    labels = images.labels[batch.examples]
    found = trainer.perturb(natural, start, labels, batch.seeds)
    assert (found - natural).abs().max() <= 0.1 + 1e-6
    assert found.min() >= 0
    assert found.max() <= 1
    loss = lambda x: cross_entropy(trainer.attacked(x), labels).item()  # noqa: E731
    assert loss(found) > loss(natural) + 0.01


def test_the_attack_runs_in_eval_mode_and_the_update_in_train_mode(images):
    config = make_config(architecture="with-statistics")
    trainer, own = trainer_for(config, images)
    trainer.network.norm.running_mean.fill_(0.3)
    before = {name: value.clone() for name, value in trainer.network.state_dict().items()}
    batch = EpochPlan(config, own, 0, (6, 6), CPU).batch(0)
    natural, start = trainer.canvas.cut(batch.examples, batch.windows)
    labels = images.labels[batch.examples]
    found = trainer.perturb(natural, start, labels, batch.seeds)
    assert all(torch.equal(before[name], value) for name, value in trainer.network.state_dict().items())
    expected = trainer.network.eval()(natural)  # what an eval-mode pass gives
    torch.testing.assert_close(trainer.attacked(natural), expected)
    trainer.network.train()
    trainer.update(natural, found, labels, len(labels))
    assert not torch.equal(before["norm.running_mean"], trainer.network.norm.running_mean)
    # The attack's view of the network moved with it.
    torch.testing.assert_close(trainer.attacked(natural), trainer.network.eval()(natural))


def test_the_update_goes_through_the_transform_and_the_canvas_stays_before_it(images):
    from linocut.transform.modules import AdaptiveBlur

    settings = AdaptiveBlur(kernel_sizes=(3, 1, 1), backend="torch").settings()
    config = make_config(transform={"class": "AdaptiveBlur", "settings": settings}, transform_at="train")
    seen = []
    trainer, own = trainer_for(config, images)
    assert trainer.attacked.transform is not None
    assert trainer.updated.transform is trainer.attacked.transform
    trainer.attacked.transform.register_forward_hook(lambda _, args, out: seen.append((args[0], out)))
    trainer.start_segment(own, 0)
    batch = EpochPlan(config, own, 0, (6, 6), CPU).batch(0)
    trainer.step(batch)
    assert len(seen) == config.num_steps + 1  # each attack step, and the update
    before_transform = seen[-1][0].detach()
    _, stored = trainer.canvas.cut(batch.examples, batch.windows)
    torch.testing.assert_close(stored, before_transform, atol=1e-6, rtol=0)
    at_test, _ = trainer_for(make_config(transform=config.transform, transform_at="test"), images)
    assert at_test.attacked.transform is None


def test_trades_equals_its_formula(images):
    config = make_config(loss="trades", trades_beta=6.0, num_steps=1, momentum=0.0, weight_decay=0.0)
    trainer, own = trainer_for(config, images)
    trainer.start_segment(own, 0)
    batch = EpochPlan(config, own, 0, (6, 6), CPU).batch(0)
    natural, start = trainer.canvas.cut(batch.examples, batch.windows)
    labels = images.labels[batch.examples]
    network = trainer.network
    x = start.clone().requires_grad_()
    apart = kl_div(log_softmax(network(x), 1), softmax(network(natural), 1).detach(), reduction="sum")
    slope = torch.autograd.grad(apart, x)[0].sign()
    expected = torch.clamp(start + 0.04 * slope, natural - 0.1, natural + 0.1).clamp(0, 1)
    found = trainer.perturb(natural, start, labels, batch.seeds)
    torch.testing.assert_close(found, expected)
    clean, attacked = network(natural), network(found)
    loss = cross_entropy(clean, labels) + 6 * kl_div(log_softmax(attacked, 1), softmax(clean, 1), reduction="batchmean")
    gradient = torch.autograd.grad(loss, network.fc.weight)[0]
    before = network.fc.weight.detach().clone()
    trainer.set_turn(0, 0.05)
    outcome = trainer.update(natural, found, labels, len(labels))
    assert outcome[0].item() / len(labels) == pytest.approx(loss.item(), rel=1e-5)
    torch.testing.assert_close(network.fc.weight.detach(), before - 0.05 * gradient, atol=1e-6, rtol=1e-5)


def test_gradients_are_taken_where_noise_moves_the_images_and_steps_where_they_are():
    torch.manual_seed(0)
    natural, weights = torch.rand(5, 3, 4, 4) * 0.4 + 0.3, torch.randn(3 * 4 * 4)
    seen, noise = [], {step: 0.05 * torch.randn(natural.shape) for step in range(3)}

    def loss(images):
        seen.append(images.detach().clone())
        return (images.flatten(1).square() @ weights).sum()

    found = climb(loss, natural, natural, num_steps=3, step_size=0.02, eps=0.05, noise=noise.__getitem__)
    points = natural
    for step in range(3):
        there = points + noise[step]
        torch.testing.assert_close(seen[step], there)
        slope = 2 * there * weights.view(3, 4, 4)
        points = (points + 0.02 * slope.sign()).clamp(natural - 0.05, natural + 0.05)
    torch.testing.assert_close(found, points)


def test_noise_of_an_example_is_its_own_and_another_in_each_epoch(images):
    config = make_config(num_steps=2, gradient_noise=0.1)
    trainer, own = trainer_for(config, images)
    trainer.start_segment(own, 0)
    first, again, later = (EpochPlan(config, own, epoch, (6, 6), CPU).batch(0) for epoch in (0, 0, 1))
    assert torch.equal(first.seeds, again.seeds)
    assert not set(first.seeds.tolist()) & set(later.seeds.tolist())
    natural, start = trainer.canvas.cut(first.examples, first.windows)
    labels = images.labels[first.examples]
    found = trainer.perturb(natural, start, labels, first.seeds)
    some = slice(2, 5)  # whoever is beside it
    alone = trainer.perturb(natural[some], start[some], labels[some], first.seeds[some])
    torch.testing.assert_close(alone, found[some])
    assert not torch.equal(found, trainer.perturb(natural, start, labels, later.seeds))


def test_natural_training_perturbs_nothing(images):
    config = make_config(method="natural")
    trainer, own = trainer_for(config, images)
    batch = EpochPlan(config, own, 0, (6, 6), CPU).batch(0)
    natural = trainer.canvas.cut_natural(batch.examples, batch.windows)
    expected = cross_entropy(trainer.network(natural), images.labels[batch.examples], reduction="sum").item()
    assert trainer.step(batch)[0].item() == pytest.approx(expected, rel=1e-6)
    assert trainer.canvas.change.numel() == 0


def test_bfloat16_and_channels_last_agree_roughly_with_plain(images):
    plain, _ = trainer_for(make_config(), images)
    quick, _ = trainer_for(make_config(precision="bfloat16", channels_last=True), images)
    natural = images.pixels[:8].float() / 255
    torch.testing.assert_close(plain.attacked(natural), quick.attacked(natural), atol=0.05, rtol=0.05)
    assert quick.attacked(natural).dtype is torch.float32


def test_l2_steps_are_those_of_the_attack():
    """Away from the box, where the nearest allowed point is the nearest one of the ball."""
    torch.manual_seed(0)
    natural, weights = torch.rand(6, 3, 4, 4) * 0.2 + 0.4, torch.randn(3 * 4 * 4, 5)
    labels, threat = torch.randint(5, (6,)), ThreatModel("l2", 0.3)

    def loss(images):
        return cross_entropy(images.flatten(1).square() @ weights, labels, reduction="sum")

    points = start = natural + 0.001 * torch.randn_like(natural)
    for _ in range(7):
        points = points.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(points), points)
        points = threat.step(points.detach(), gradient, 0.1, natural)
    found = climb(loss, natural, start, num_steps=7, step_size=0.1, eps=0.3, norm="l2")
    assert torch.allclose(found, points, atol=1e-6)
    assert threat.distance(found, natural).max() == pytest.approx(0.3, abs=1e-5)


def test_l2_steps_stay_in_ball_and_box_whatever_the_start():
    natural = make_images(20, channels=3).pixels.float() / 255
    start = natural + torch.randn(natural.shape, generator=torch.Generator().manual_seed(1))
    nowhere = climb(lambda images: (images * 0).sum(), natural, start, num_steps=1, step_size=0.1, eps=0.5, norm="l2")
    assert ThreatModel("l2", 0.5).contains(nowhere, natural, slack=1e-6).all()


def test_a_run_in_l2_keeps_perturbations_of_that_length():
    images = make_images(16, channels=3)
    trainer, own = trainer_for(make_config(num_steps=3, norm="l2", eps=0.8, step_size=0.4, pad=0), images)
    trainer.start_segment(own, 0)
    for step, batch in enumerate(EpochPlan(trainer.config, own, 0, (6, 6), CPU).batches()):
        trainer.set_turn(step, trainer.config.learning_rate)
        trainer.step(batch)
    lengths = trainer.canvas.change.flatten(1).norm(dim=1)
    assert lengths.max() == pytest.approx(0.8, abs=1e-5)
    assert lengths.min() > 0.5
