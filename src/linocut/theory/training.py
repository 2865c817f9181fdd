"""Training a network so that its predictions can be proven: the loss is taken on the worst case of the intervals."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from linocut.errors import InputError
from linocut.theory.bounds import margins, propagate
from linocut.theory.certificate import Codebook, binary_bounds, span_of
from linocut.theory.variation import vary_contrast


@dataclass(frozen=True, kw_only=True)
class IntervalTraining:
    """How to train: eps (levels) and the weight of the interval loss grow over the ramp; lr falls to 0 at the end."""

    eps: float
    codebook: Codebook
    epochs: int
    batch: int = 256
    lr: float = 1e-3
    warmup: float = 0.02
    ramp: float = 0.4
    natural_weight: float = 0.25
    edge_windows: float = 0.5
    contrast: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 2:
            raise InputError(f"epochs must be at least 1 and batch at least 2, got {self.epochs} and {self.batch}")
        if not (0 <= self.warmup < self.ramp <= 1 and 0 <= self.natural_weight <= 1):
            raise InputError("0 <= warmup < ramp <= 1 and a natural_weight from 0 to 1 are wanted")

    def growth(self, progress: float) -> float:
        """How far the ramp has come, 0..1, when `progress` of the training is done."""
        return min(1.0, max(0.0, (progress - self.warmup) / (self.ramp - self.warmup)))

    def learning_rate(self, progress: float) -> float:
        """A short linear rise, constant while eps grows, then half a cosine down to zero."""
        rise = min(1.0, progress / 0.01 + 0.05)
        fall = max(0.0, (progress - self.ramp) / (1 - self.ramp)) if self.ramp < 1 else 0.0
        return self.lr * rise * (1 + math.cos(math.pi * fall)) / 2


def draw_windows(
    images: Tensor, eps: float, codebook: Codebook, edge_windows: float, dice: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Natural, lowest and highest black-and-white images as floats, each under one window its adversary may choose.

    A share `edge_windows` of the draws takes the first or the last window, which are the hardest.
    """
    choice = span_of(images, eps, codebook)
    n = len(images)
    where = torch.rand(n, generator=dice, device=images.device)
    at_edge = torch.rand(n, generator=dice, device=images.device) < edge_windows
    where = torch.where(at_edge, where.round(), where)
    count = choice.first_max - choice.first_min + 1
    first = choice.first_min + (where * count).long().clamp_max(count - 1)
    lower, upper = binary_bounds(images, first, choice.last(first))
    clean = span_of(images, 0, codebook)
    natural, _ = binary_bounds(images, clean.first_min, clean.last_max)
    return natural.float(), lower.float(), upper.float()


def loss_of(network: nn.Sequential, batch: tuple[Tensor, Tensor, Tensor], labels: Tensor, weight: float) -> Tensor:
    """(1 - weight) times the natural cross-entropy plus weight times that of the worst case."""
    if weight == 0:
        return F.cross_entropy(network(batch[0]), labels)
    last = network[-1]
    assert isinstance(last, nn.Linear)
    features, center, radius = propagate(network, *batch)
    natural = F.cross_entropy(last(features), labels)
    worst = F.cross_entropy(-margins(last, center, radius, labels), labels)
    return (1 - weight) * natural + weight * worst


def train(
    network: nn.Sequential,
    images: Tensor,
    labels: Tensor,
    plan: IntervalTraining,
    report: Callable[[int, float, float], None] = lambda epoch, loss, seconds: None,
) -> nn.Sequential:
    """The network, trained in place. `images` is uint8 (N, 1, H, W) on the network's device, `labels` int64."""
    dice = torch.Generator(device=images.device).manual_seed(plan.seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=plan.lr, fused=images.is_cuda or None)
    network.train()
    steps = len(images) // plan.batch
    for epoch in range(plan.epochs):
        started = time.perf_counter()
        shown = vary_contrast(images, plan.contrast, dice) if plan.contrast else images
        order = torch.randperm(len(images), generator=dice, device=images.device)
        total = torch.zeros((), device=images.device)
        for step in range(steps):
            progress = (epoch + step / steps) / plan.epochs
            for group in optimiser.param_groups:
                group["lr"] = plan.learning_rate(progress)
            index = order[step * plan.batch : (step + 1) * plan.batch]
            grown = plan.growth(progress)
            batch = draw_windows(shown[index], plan.eps * grown, plan.codebook, plan.edge_windows, dice)
            loss = loss_of(network, batch, labels[index], grown * (1 - plan.natural_weight))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 10.0)
            optimiser.step()
            total += loss.detach()
        report(epoch, float(total) / max(steps, 1), time.perf_counter() - started)
    return network.eval()
