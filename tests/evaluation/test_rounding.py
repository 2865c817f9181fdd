import torch
from evaluation_cases import Linear, direction, pictures

from linocut.attacks.threat import ThreatModel
from linocut.evaluation.case import predict
from linocut.evaluation.rounding import predict_rounded, rounded_onwards


def testonwards_is_whole_away_from_the_natural_image_and_in_the_ball():
    natural = pictures().unit()
    for eps in (0.0312, 8 / 255, 0.001):
        threat = ThreatModel("linf", eps)
        moved = natural + eps * (2 * torch.rand(natural.shape, generator=torch.Generator().manual_seed(0)) - 1)
        levels = rounded_onwards(moved, natural, threat) * 255
        assert torch.allclose(levels, levels.round(), atol=1e-4)
        away, asked = levels - natural * 255, (moved - natural) * 255
        assert bool((away.abs() <= int(255 * eps + 1e-6) + 1e-3).all())
        assert bool((away * asked >= -1e-3).all())
        free = asked.abs() <= int(255 * eps + 1e-6)
        assert bool((away.abs() >= asked.abs() - 1e-2)[free].all())


def test_whole_levels_stay_what_they_are():
    natural = pictures().unit()
    assert torch.equal(rounded_onwards(natural, natural, ThreatModel("l2", 0.0)), natural)


def test_a_point_barely_across_survives_rounding_where_the_ball_has_room():
    """One tenth of a level past the boundary: the nearest levels undo it, the next ones do not."""
    images, model = pictures(), Linear(direction())
    natural, labels = images.unit(), images.labels
    score = ((natural - 0.5) * direction()).flatten(1).sum(dim=1)
    step = (score.abs() / direction().abs().sum()).view(-1, 1, 1, 1) + 0.1 / 255
    barely = natural - step * (direction().sign() * score.sign().view(-1, 1, 1, 1))
    assert bool((predict(model, barely) != labels).all())
    nearest = predict(model, barely.mul(255).round().div(255))
    assert bool((nearest == labels).any())
    roomy = predict_rounded(model, barely, natural, labels, ThreatModel("linf", 0.2))
    assert bool((roomy != labels).all())
    # With no room beyond the point, only the nearest levels are left to try.
    tight = predict_rounded(model, barely, natural, labels, ThreatModel("l2", 1e-6))
    assert torch.equal(tight, nearest)
