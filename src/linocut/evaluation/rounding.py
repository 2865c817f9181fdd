"""What is left of adversarial images when they are stored as uint8."""

import torch

from linocut.attacks.threat import ThreatModel
from linocut.attacks.whole_levels import reach
from linocut.evaluation.balls import holds
from linocut.evaluation.case import Model, predict


def predict_rounded(
    model: Model, images: torch.Tensor, natural: torch.Tensor, labels: torch.Tensor, threat: ThreatModel
) -> torch.Tensor:
    """The predicted class of each image in whole grey levels, (B,).

    The nearest levels first. Where the model is right about those, the levels away from the natural image, if they
    stay in the ball: a worst-case point lies barely across the boundary, and an attacker who has to write a PNG
    would round it onwards, not back.
    """
    prediction = predict(model, images.mul(255).round().div(255))
    onwards = rounded_onwards(images, natural, threat)
    retry = (prediction == labels) & holds(threat, onwards, natural)
    rows = retry.nonzero().squeeze(1)
    if len(rows):
        prediction[rows] = predict(model, onwards[rows])
    return prediction


def rounded_onwards(images: torch.Tensor, natural: torch.Tensor, threat: ThreatModel) -> torch.Tensor:
    """The images in whole levels, each value rounded away from its natural one, as far as an L-inf ball lets it."""
    levels, start = images.double() * 255, natural.mul(255).round().double()  # natural images are uint8
    near_whole = (levels - levels.round()).abs() < 1e-3  # a float32 image of whole levels is not moved
    away = torch.where(levels > start, levels.ceil(), levels.floor())
    away = torch.where(near_whole, levels.round(), away)
    if threat.norm == "linf":
        most = reach(threat)
        away = torch.minimum(torch.maximum(away, start - most), start + most)
    return (away.clamp(0, 255) / 255).float()
