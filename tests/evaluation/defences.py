"""Defences that are broken on purpose, each around the linear model whose right answers are known."""

import torch
from evaluation_cases import Linear, direction
from torch import nn


class Around(nn.Module):
    """A linear model with something wrong."""

    def __init__(self, scale: float = 1.0):
        super().__init__()
        self.model = Linear(direction(), scale)


class GradientKiller(Around):
    """The same logits with no way back."""

    def forward(self, images):
        return self.model(images.detach()) + 0 * images.sum(dim=(1, 2, 3))[:, None]


class NotANumber(Around):
    """The right logits, and a gradient of NaN."""

    def forward(self, images):
        return self.model(images) + (0 * (images * 0).sqrt().sum(dim=(1, 2, 3)))[:, None]


class RandomNoise(Around):
    """Normal noise before the model, new at every forward."""

    def forward(self, images):
        return self.model(images + 0.02 * torch.randn_like(images))


class _Misleading(torch.autograd.Function):
    @staticmethod
    def forward(ctx, images, wrong_way):
        ctx.save_for_backward(wrong_way)
        return images.clone()

    @staticmethod
    def backward(ctx, *gradients):
        (wrong_way,) = ctx.saved_tensors
        return torch.where(wrong_way[:, None, None, None], -gradients[0], gradients[0]), None


class OffTheGrid(Around):
    """The true gradient at whole grey levels, the opposite one everywhere else: only the first step is right."""

    def forward(self, images):
        levels = images.detach() * 255
        wrong_way = ((levels - levels.round()).abs() > 1e-3).flatten(1).any(dim=1)
        return self.model(_Misleading.apply(images, wrong_way))


class OnlyNearby(Around):
    """The true gradient while all pixels keep to the range of natural ones, none outside it."""

    def forward(self, images):
        outside = ((images - 128 / 255).abs() > 32.5 / 255).flatten(1).any(dim=1)
        kept = torch.where(outside[:, None, None, None], images.detach(), images)
        return self.model(kept)


class PassesBy(Around):
    """Three classes; on the way to the boundary another class wins at a lower loss than further on, where none does."""

    def forward(self, images):
        score = self.model(images)
        own, label = score.max(dim=1)
        nothing = torch.zeros_like(own)
        near = torch.tensor([0.45, 0.55, 1e-6]).log()
        far = torch.tensor([0.34, 0.33, 0.33]).log()
        slope = torch.stack([0.01 * own, nothing, nothing], dim=1)  # keeps the climb going
        flat = torch.where((own < 0.2)[:, None], far, near) + slope
        turned = torch.where((label == 0)[:, None], flat, flat[:, [1, 0, 2]])
        plain = torch.cat([10 * score, torch.full_like(own, -9.0)[:, None]], dim=1)
        return torch.where((own < 0.3)[:, None], turned, plain)


class Hooked(Around):
    """A model with hooks; `helpful` says whether its own backward points the right way."""

    def __init__(self, *, helpful: bool, rule: str = "bpda"):
        super().__init__()
        self.helpful, self.rule = helpful, rule

    def extra_repr(self):
        return f"helpful={self.helpful}, rule={self.rule}"

    def forward(self, images):
        if self.rule == "none":
            return self.model(images.detach())
        wrong_way = torch.full((len(images),), not self.helpful)
        return self.model(_Misleading.apply(images, wrong_way))

    def with_surrogate(self, name):
        return Hooked(helpful=self.helpful, rule=name)

    def undefended(self):
        return self.model


def sixteen_levels(images):
    """Bit-depth reduction: four bits a pixel."""
    return (images * 15).round() / 15
