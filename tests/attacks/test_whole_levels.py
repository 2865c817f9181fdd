import pytest
import torch

from linocut.attacks import Dice, ThreatModel
from linocut.attacks.whole_levels import WholeLevelPGD, WholeLevelSquare, in_whole_levels, reach

BALLS = [ThreatModel("linf", 0.031), ThreatModel("linf", 8 / 255), ThreatModel("l2", 0.5), ThreatModel("l2", 0.02)]


def natural_images(count=40):
    """uint8 pictures as float32, black and white among them."""
    pixels = torch.randint(0, 256, (count, 3, 8, 8), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    pixels[0], pixels[1] = 0, 255
    return pixels.float().div_(255)


def test_every_level_is_the_float_that_a_stored_image_has():
    levels = torch.arange(256, dtype=torch.uint8).float().div_(255).view(1, 1, 16, 16)
    assert torch.equal(in_whole_levels(levels, levels, ThreatModel("l2", 1.0)), levels)
    assert torch.equal(in_whole_levels(levels, levels, ThreatModel("linf", 0.0)), levels)


@pytest.mark.parametrize("threat", BALLS, ids=str)
def test_points_become_whole_and_stay_inside(threat):
    natural, dice = natural_images(), torch.Generator().manual_seed(1)
    points = threat.project(natural + torch.randn(natural.shape, generator=dice), natural)
    found = in_whole_levels(points, natural, threat)
    assert torch.equal(found, (found * 255).round().div(255))
    assert bool(threat.contains(found.double(), natural.double(), slack=1e-7).all())
    if threat.norm == "linf":
        assert bool(((found - points).abs() <= 1.001 / 255).all())
    elif threat.eps > 0.1:  # next to nothing of the move is lost
        ratio = threat.distance(found, natural) / threat.distance(points, natural)
        assert bool((ratio > 0.95).all())


def test_an_l_inf_ball_reaches_whole_levels_only():
    assert [reach(ThreatModel("linf", eps)) for eps in (0.0, 0.031, 8 / 255, 1.0)] == [0, 7, 8, 255]


def test_a_linear_model_falls_exactly_where_the_corner_in_whole_levels_breaks_it():
    dice = torch.Generator().manual_seed(2)
    natural = torch.randint(60, 190, (60, 3, 4, 4), generator=dice, dtype=torch.uint8).float().div_(255)
    weight = torch.randn(3, 4, 4, generator=dice)
    threat = ThreatModel("linf", 3.9 / 255)  # three levels and a part that cannot be used
    score = (natural.double() * weight.double()).sum(dim=(1, 2, 3))
    middle = float(score.median()) + 0.02

    def model(images):
        value = (images.double() * weight.double()).sum(dim=(1, 2, 3)) - middle
        return torch.stack([value, torch.zeros_like(value)], dim=1)

    labels, margin = model(natural).argmax(dim=1), (score - middle).abs()
    corner = 3 / 255 * float(weight.double().abs().sum())
    found = WholeLevelPGD(num_steps=5).run(model, natural, labels, threat, Dice(torch.arange(60)))
    clear = (margin - corner).abs() > 1e-6
    assert torch.equal(found.broken[clear], (margin < corner)[clear])
    assert 5 < int(found.broken.sum()) < 55
    assert torch.equal(found.images, (found.images * 255).round().div(255))


@pytest.mark.parametrize(
    "threat", [ThreatModel("linf", 8 / 255), ThreatModel("linf", 0.031), ThreatModel("l2", 0.5)], ids=str
)
def test_random_windows_move_from_level_to_level(threat):
    natural, asked = natural_images(), []
    weight = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(3))

    def model(images):
        asked.append(images)
        value = ((images - 0.5) * weight).sum(dim=(1, 2, 3))
        return torch.stack([value, torch.zeros_like(value)], dim=1)

    labels = model(natural).argmax(dim=1)
    asked.clear()
    found = WholeLevelSquare(num_queries=80).run(model, natural, labels, threat, Dice(torch.arange(len(natural))))
    assert len(asked) == 80 == int(found.queries.max())
    assert all(torch.equal(images, (images * 255).round().div(255)) for images in asked)
    assert bool(threat.contains(found.images.double(), natural.double(), slack=1e-7).all())
    assert int(found.broken.sum()) > 0
    assert torch.equal(model(found.images).argmax(dim=1) != labels, found.broken)


def test_no_query_is_wasted_on_the_same_image():
    natural, asked = natural_images(), []

    def model(images):
        asked.append(images)
        return torch.stack([images.mean(dim=(1, 2, 3)), torch.zeros(len(images))], dim=1)  # never misclassified

    labels = torch.zeros(len(natural), dtype=torch.int64)
    WholeLevelSquare(num_queries=60).run(model, natural[2:], labels[2:], ThreatModel("linf", 8 / 255), Dice(labels[2:]))
    best, same = asked[0], 0
    for images in asked[1:]:
        same += int((images == best).flatten(1).all(dim=1).sum())
        better = images.mean(dim=(1, 2, 3)) < best.mean(dim=(1, 2, 3))
        best = torch.where(better[:, None, None, None], images, best)
    assert same == 0
