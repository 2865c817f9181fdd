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
from linocut.theory.certificate import Codebook, binary_bounds, parts_of_a_level, span_in_parts, span_of
from linocut.theory.tape import Repeated, Tape
from linocut.theory.variation import shifted, vary_contrast


@dataclass(frozen=True, kw_only=True)
class IntervalTraining:
    """How to train: eps (levels) and the weight of the interval loss grow over the ramp; lr falls to 0 at the end.

    The rest of the loss, `natural_weight` at the end, is taken on single images, a share `attacked` of which is
    attacked first. Windows are extreme in a share `edge_windows` of all draws; images move by up to `shift` pixels.
    """

    eps: float
    codebook: Codebook
    epochs: int
    batch: int = 256
    lr: float = 1e-3
    warmup: float = 0.02
    ramp: float = 0.4
    natural_weight: float = 0.25
    attacked: float = 0.0
    edge_windows: float = 0.5
    shift: int = 0
    contrast: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 2:
            raise InputError(f"epochs must be at least 1 and batch at least 2, got {self.epochs} and {self.batch}")
        if not (0 <= self.warmup < self.ramp <= 1 and 0 <= self.natural_weight <= 1 and 0 <= self.attacked <= 1):
            raise InputError("0 <= warmup < ramp <= 1, natural_weight and attacked from 0 to 1 are wanted")

    def growth(self, progress: float) -> float:
        """How far the ramp has come, 0..1, when `progress` of the training is done."""
        return min(1.0, max(0.0, (progress - self.warmup) / (self.ramp - self.warmup)))

    def learning_rate(self, progress: float) -> float:
        """A short linear rise, constant while eps grows, then half a cosine down to zero."""
        rise = min(1.0, progress / 0.01 + 0.05)
        fall = max(0.0, (progress - self.ramp) / (1 - self.ramp)) if self.ramp < 1 else 0.0
        return self.lr * rise * (1 + math.cos(math.pi * fall)) / 2

    def schedule(self, epoch: int, steps: int) -> list[tuple[int, float, float]]:
        """For every step of an epoch: the radius in 1024ths of a level, the weight of the interval loss, the rate."""
        rows = []
        for step in range(steps):
            progress = (epoch + step / steps) / self.epochs
            grown = self.growth(progress)
            weight = grown * (1 - self.natural_weight)
            rows.append((parts_of_a_level(self.eps * grown), weight, self.learning_rate(progress)))
        return rows


def draw_windows(
    images: Tensor, parts: int | Tensor, codebook: Codebook, where: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Natural, lowest and highest black-and-white images as floats, each under one window its adversary may choose.

    The radius is in 1024ths of a level; `where` (N,) picks windows from the first (0) to the last (1).
    """
    flat = images.flatten(1)
    choice = span_in_parts(flat.amin(1), flat.amax(1), parts, codebook)
    count = choice.first_max - choice.first_min + 1
    first = choice.first_min + torch.minimum((where * count).long(), count - 1)
    lower, upper = binary_bounds(images, first, choice.last(first))
    clean = span_of(images, 0, codebook)
    natural, _ = binary_bounds(images, clean.first_min, clean.last_max)
    return natural.float(), lower.float(), upper.float()


def attacked(network: nn.Sequential, lower: Tensor, upper: Tensor, labels: Tensor, colors: Tensor) -> Tensor:
    """Images between lower and upper, every undecided pixel as one gradient step from random `colors` likes it least.

    The network is asked as it will be used: its batch norms neither see nor count these images.
    """
    network.eval()
    seen = torch.where(colors, upper, lower).requires_grad_()
    (gradient,) = torch.autograd.grad(F.cross_entropy(network(seen), labels), seen)
    network.train()
    return torch.where(gradient > 0, upper, lower)


def loss_of(
    network: nn.Sequential, point: Tensor, lower: Tensor, upper: Tensor, labels: Tensor, weight: float | Tensor
) -> Tensor:
    """(1 - weight) times the cross-entropy at single images plus weight times that of the worst case."""
    last = network[-1]
    assert isinstance(last, nn.Linear)
    features, center, radius = propagate(network, point, lower, upper)
    at_point = F.cross_entropy(last(features), labels)
    worst = F.cross_entropy(-margins(last, center, radius, labels), labels)
    return (1 - weight) * at_point + weight * worst


def train(
    network: nn.Sequential,
    images: Tensor,
    labels: Tensor,
    plan: IntervalTraining,
    report: Callable[[int, float, float], None] = lambda epoch, loss, seconds: None,
) -> nn.Sequential:
    """The network, trained in place. `images` is uint8 (N, 1, H, W) on the network's device, `labels` int64."""
    if len(images) < plan.batch:
        raise InputError(f"a batch of {plan.batch} needs at least as many images, got {len(images)}: lower batch?")
    dice = torch.Generator(device=images.device).manual_seed(plan.seed)
    rate = torch.tensor(plan.lr, device=images.device)
    optimiser = torch.optim.Adam(network.parameters(), lr=rate, fused=True)
    tape = Tape(len(images) // plan.batch, plan.batch, images)
    first = round(plan.attacked * plan.batch)

    def step() -> None:
        index = tape.now(tape.order)
        shown, wanted = tape.images.index_select(0, index), labels.index_select(0, index)
        point, lower, upper = draw_windows(shown, tape.now(tape.parts), plan.codebook, tape.now(tape.window))
        if first:
            colors = tape.now(tape.colors)
            worse = attacked(network, lower[:first], upper[:first], wanted[:first], colors[:first])
            point = torch.cat([worse, point[first:]])
        loss = loss_of(network, point, lower, upper, wanted, tape.now(tape.weight))
        rate.copy_(tape.now(tape.rate))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimiser.step()
        tape.total.add_(loss.detach())
        tape.due.add_(1)

    network.train()
    take_step = Repeated(step, optimiser, images.device)
    for epoch in range(plan.epochs):
        started = time.perf_counter()
        shown = shifted(images, plan.shift, dice) if plan.shift else images
        shown = vary_contrast(shown, plan.contrast, dice) if plan.contrast else shown
        tape.fill(shown, plan.schedule(epoch, tape.steps), plan.edge_windows, dice)
        for _ in range(tape.steps):
            take_step()
        report(epoch, float(tape.total) / tape.steps, time.perf_counter() - started)
    return network.eval()
