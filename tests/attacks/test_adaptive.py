"""The attacks that look into a defence, on a toy defence with every hook."""

import cv2
import numpy as np
import pytest
import torch

from linocut.attacks import (
    APGD,
    PGD,
    ChenLoop,
    Continued,
    Dice,
    EdgePGD,
    FrozenPalettePGD,
    NoiseAveragedPGD,
    NotApplicable,
    PrintablePGD,
    RandomNoise,
    Square,
    SurrogatePGD,
    TargetedAPGD,
    ThreatModel,
    TransferPGD,
)
from linocut.attacks.edges import edge_response
from linocut.attacks.printability import non_printability
from linocut.errors import InputError

NEEDS_HOOKS = {
    "palette": PrintablePGD(num_steps=2),
    "surrogate": SurrogatePGD(num_steps=2),
    "frozen": FrozenPalettePGD(num_steps=2),
    "undefended": TransferPGD(num_steps=2),
    "chen": ChenLoop(num_steps=2, surrogate="soft"),
}
EVERY_ATTACK = [
    EdgePGD(num_steps=4),
    PrintablePGD(num_steps=4),
    PrintablePGD(num_steps=4, palette=((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))),
    SurrogatePGD(num_steps=4, surrogate="identity"),
    FrozenPalettePGD(num_steps=4, any_iterate=True),
    NoiseAveragedPGD(num_steps=3, copies=2),
    RandomNoise(draws=4),
    TransferPGD(num_steps=4, any_iterate=True),
    Continued(first=TransferPGD(num_steps=2), second=PGD(num_steps=2)),
    ChenLoop(num_steps=4, surrogate="soft"),
    ChenLoop(num_steps=4, any_iterate=True),
]


@pytest.mark.parametrize("attack", EVERY_ATTACK, ids=lambda attack: attack.name)
def test_every_attack_stays_inside_tells_the_truth_and_ignores_batch_mates(attack, quantized, batch, threat):
    images, labels, dice = batch
    model = quantized()
    labels = model(images).argmax(dim=1)
    result = attack.run(model, images, labels, threat, dice)
    assert threat.contains(result.images, images).all()
    prediction = model(result.images).argmax(dim=1)
    assert torch.equal(result.prediction, prediction)
    assert torch.equal(result.broken, prediction != labels)
    rows = torch.tensor([5, 1, 20])
    part = attack.run(model, images[rows], labels[rows], threat, dice.select(rows))
    assert torch.allclose(part.images, result.images[rows], atol=1e-6)
    nothing = ThreatModel(threat.norm, 0.0)
    assert torch.equal(attack.run(model, images, labels, nothing, dice).images, images)


@pytest.mark.parametrize("attack", NEEDS_HOOKS.values(), ids=NEEDS_HOOKS)
def test_a_model_without_the_hook_is_not_applicable(attack, network, batch, threat):
    images, labels, dice = batch
    with pytest.raises(NotApplicable, match="the model offers no"):
        attack.run(network, images, labels, threat, dice)


def test_the_edge_response_is_opencvs_sobel_over_its_largest_value():
    image = torch.rand(1, 2, 7, 5, generator=torch.Generator().manual_seed(0))
    found = edge_response(image)[0]
    for channel in range(2):
        plane = image[0, channel].double().numpy()
        x, y = (cv2.Sobel(plane, cv2.CV_64F, *d, ksize=3, borderType=cv2.BORDER_REFLECT_101) for d in ((1, 0), (0, 1)))
        assert np.allclose(found[channel], np.hypot(x, y) / 20**0.5, atol=1e-5)
    for shape in ((1, 1, 1, 1), (1, 1, 1, 4), (1, 1, 2, 2)):
        assert edge_response(torch.ones(shape)).max() < 1e-5


def test_the_loss_alone_picks_the_best_iterate_however_heavy_the_edges(network, batch, threat, watched):
    images, labels, dice = batch
    model = watched(network)
    result = EdgePGD(num_steps=6, weight=1e4).run(model, images, labels, threat, dice)
    losses = [torch.nn.functional.cross_entropy(network(x), labels, reduction="none") for x in model.seen]
    assert torch.allclose(result.loss_best, torch.stack(losses).amax(dim=0), atol=1e-5)


def flat(images):
    """A model without any slope, on which an added term is all there is to climb."""
    return torch.zeros(len(images), 6) + 0 * images.sum()


def test_the_edge_gradient_climbs_the_edge_response(batch, threat, watched):
    images, labels, dice = batch
    model = watched(flat)
    EdgePGD(num_steps=10, random_start=False).run(model, images, labels, threat, dice)
    assert edge_response(model.seen[-1]).mean() > 1.02 * edge_response(images).mean()


def test_non_printability_is_a_geometric_mean_with_the_right_gradient():
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(2, 3, 2, 2, generator=generator)
    colors = torch.rand(2, 4, 3, generator=generator)
    exists = torch.tensor([[True] * 4, [True, True, False, False]])
    score, gradient = non_printability(points, colors, exists)
    pixel = points.double().requires_grad_()
    expected = []
    for row, number in enumerate((4, 2)):
        away = pixel[row].permute(1, 2, 0)[:, :, None, :] - colors[row, :number].double()
        distance = (away.square().sum(dim=-1) + 1e-6).sqrt()
        expected.append(distance.prod(dim=-1).pow(1 / number).mean())
    (true,) = torch.autograd.grad(sum(expected), pixel)
    assert torch.allclose(score.double(), torch.stack(expected).detach(), atol=1e-5)
    assert torch.allclose(gradient.double(), true, atol=1e-4)


def test_the_pull_brings_pixels_to_the_palette(batch, watched):
    images, labels, dice = batch
    model, threat = watched(flat), ThreatModel("linf", 0.3)
    colors = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    PrintablePGD(num_steps=20, random_start=False, palette=colors).run(model, images, labels, threat, dice)
    to_black = model.seen[-1].norm(dim=1)
    to_white = (1 - model.seen[-1]).norm(dim=1)
    before = torch.minimum(images.norm(dim=1), (1 - images).norm(dim=1)).mean()
    assert torch.minimum(to_black, to_white).mean() < before - 0.1
    with pytest.raises(NotApplicable, match="3 channels"):  # so a suite goes on with grey images
        PrintablePGD(palette=((0.0,),)).run(model, images, labels, threat, dice)


def test_surrogates_are_asked_for_by_name_and_a_dead_one_goes_nowhere(quantized, batch, watched):
    images, labels, dice = batch
    model, threat = quantized(levels=30), ThreatModel("linf", 0.05)
    labels = model(images).argmax(dim=1)
    settings = {"num_steps": 20, "random_start": False}
    dead = SurrogatePGD(surrogate="none", **settings).run(model, images, labels, threat, dice)
    assert model.calls == ["none"]
    assert torch.equal(dead.images, images)
    alive = SurrogatePGD(surrogate="identity", **settings).run(model, images, labels, threat, dice)
    assert alive.broken.float().mean() > 0.3


def test_frozen_palettes_are_asked_for_again_whenever_examples_leave(quantized, batch):
    images, labels, dice = batch
    model, threat = quantized(levels=30), ThreatModel("linf", 0.05)
    labels = model(images).argmax(dim=1)
    result = FrozenPalettePGD(num_steps=20, any_iterate=True).run(model, images, labels, threat, dice)
    assert model.calls[0] == len(images)
    assert model.calls == sorted(set(model.calls), reverse=True)  # once for each set of survivors
    assert len(model.calls) > 1
    assert result.broken.float().mean() > 0.3
    model.calls.clear()
    FrozenPalettePGD(num_steps=5).run(model, images, labels, threat, dice)
    assert model.calls == [len(images)]


def test_noise_averaging_sees_past_a_plateau():
    """A staircase has slope at its edges alone; the mean over a neighbourhood finds them."""

    def model(images):
        height = images.mean(dim=(1, 2, 3))
        ramp = 20 * torch.relu(height - 0.512)  # flat at the start, so PGD stays
        return torch.stack([0.1 - ramp, torch.zeros_like(ramp)], dim=1)

    images, labels = torch.full((6, 1, 2, 2), 0.5), torch.zeros(6, dtype=torch.long)
    threat, dice = ThreatModel("linf", 0.05), Dice.of(0, 6)
    settings = {"num_steps": 40, "random_start": False, "loss": "margin"}
    assert not PGD(**settings).run(model, images, labels, threat, dice).broken.any()
    averaged = NoiseAveragedPGD(**settings, sigma=0.02).run(model, images, labels, threat, dice)
    assert averaged.broken.all()
    assert (averaged.queries == 40 * 9 + 1).all()
    with pytest.raises(InputError):
        NoiseAveragedPGD(copies=0)


def test_random_noise_breaks_only_what_is_close_to_the_edge(network, batch, threat, strong_pgd):
    images, labels, dice = batch
    noise = RandomNoise(draws=30).run(network, images, labels, threat, dice)
    pgd = strong_pgd.run(network, images, labels, threat, dice)
    assert noise.broken.sum() < pgd.broken.sum()
    assert (noise.queries[~noise.broken] == 30).all()
    assert (noise.steps == 0).all()
    with pytest.raises(InputError):
        RandomNoise(draws=0)


def test_transfer_climbs_the_source_and_counts_on_the_target(network, quantized, batch):
    images, labels, dice = batch
    threat = ThreatModel("linf", 0.08)
    target = quantized(levels=30, surrogate="none")  # no gradient of its own
    labels = target(images).argmax(dim=1)
    settings = {"num_steps": 20, "random_start": False}
    assert not PGD(**settings).run(target, images, labels, threat, dice).broken.any()
    moved = TransferPGD(**settings).run(target, images, labels, threat, dice)
    assert target.calls == ["undefended"]
    assert moved.broken.float().mean() > 0.5
    named = TransferPGD(**settings, source=network).run(target, images, labels, threat, dice)
    assert torch.equal(named.images, moved.images)


def test_continued_starts_the_second_where_the_first_ended(network, batch, threat, watched):
    images, labels, dice = batch
    first, second = PGD(name="a", num_steps=2), PGD(name="b", num_steps=3)
    both = Continued(first=first, second=second)
    assert both.name == "a+b"
    model = watched(network)
    result = both.run(model, images, labels, threat, dice)
    alone = first.run(network, images, labels, threat, dice)
    left = ~alone.broken
    assert torch.allclose(model.seen[3], alone.images[left], atol=1e-6)
    assert (result.loss_best >= alone.loss_best - 1e-6).all()
    assert torch.equal(result.steps, 2 + 3 * left.int())


def test_chens_loop_takes_adams_steps_from_the_lower_corner_and_returns_the_last(linear, watched):
    images, labels = torch.full((1, 1, 1, 2), 0.5), torch.tensor([0])
    model, threat = watched(linear(torch.tensor([[[[1.0, -1.0]]]]), bias=9.0)), ThreatModel("linf", 0.25)
    result = ChenLoop(num_steps=3, step_size=0.125).run(model, images, labels, threat, Dice.of(0, 1))
    # Constant signs make every Adam step the step size: (-, +) from (0.25, 0.25), stopped by the ball.
    path = [(0.25, 0.25), (0.25, 0.375), (0.25, 0.5), (0.25, 0.625)]
    assert torch.allclose(model.images.flatten(1), torch.tensor(path), atol=1e-5)
    assert torch.allclose(result.images.flatten(), torch.tensor(path[-1]), atol=1e-5)
    with pytest.raises(InputError):
        ChenLoop(step_size=0.0)


@pytest.mark.parametrize("attack", [PGD(), APGD(), TargetedAPGD(), Square(), RandomNoise(), *EVERY_ATTACK])
def test_settings_are_frozen(attack):
    with pytest.raises(AttributeError):
        attack.name = "another"
