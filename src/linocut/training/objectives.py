"""What the attack climbs and what the update descends: cross-entropy, or TRADES (Zhang et al. 2019)."""

from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy, kl_div, log_softmax

Logits = Callable[[torch.Tensor], torch.Tensor]


def attack_objective(
    loss: str, logits: Logits, natural: torch.Tensor, labels: torch.Tensor
) -> Callable[[torch.Tensor], torch.Tensor]:
    """images -> the sum over the batch of what an attack raises."""
    if loss == "cross-entropy":
        return lambda images: cross_entropy(logits(images), labels, reduction="sum")
    with torch.no_grad():
        target = log_softmax(logits(natural), dim=1)
    return lambda images: kl_div(log_softmax(logits(images), dim=1), target, reduction="sum", log_target=True)


def training_loss(
    loss: str,
    beta: float,
    logits: Logits,
    natural: torch.Tensor,
    perturbed: torch.Tensor,
    labels: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum over the batch of what training lowers, and the logits of the perturbed images."""
    found = logits(perturbed)
    if loss == "cross-entropy":
        return cross_entropy(found, labels, reduction="sum"), found
    clean = logits(natural)
    apart = kl_div(log_softmax(found, dim=1), log_softmax(clean, dim=1), reduction="sum", log_target=True)
    return cross_entropy(clean, labels, reduction="sum") + beta * apart, found


def climb(
    objective: Callable[[torch.Tensor], torch.Tensor],
    natural: torch.Tensor,
    start: torch.Tensor,
    *,
    num_steps: int,
    step_size: float,
    eps: float,
    norm: str = "linf",
    noise: Callable[[int], torch.Tensor] | None = None,
) -> torch.Tensor:
    """The images after `num_steps` steps, each brought back to eps around `natural` and to [0,1].

    Sign steps in L-inf; steps along the gradient, of length `step_size` for each image, in L2. noise(step) is added to
    the images where the gradient of that step is taken.
    """
    low, high = (natural - eps).clamp_(0, 1), (natural + eps).clamp_(0, 1)
    images = start
    for step in range(num_steps):
        point = images if noise is None else (images + noise(step)).clamp_(0, 1)
        point = point.detach().requires_grad_()
        # autograd.grad, never torch.func.grad: the transform's own backward must be used, compiled or not.
        (slope,) = torch.autograd.grad(objective(point), point)
        if norm == "linf":
            images = torch.add(images.detach(), slope.sign(), alpha=step_size).clamp_(low, high)
        else:
            change = (images.detach() - natural).add_(slope / _lengths(slope), alpha=step_size)
            images = change.mul_((eps / _lengths(change)).clamp_(max=1)).add_(natural).clamp_(0, 1)
    return images.detach()


def _lengths(change: torch.Tensor) -> torch.Tensor:
    """The L2 norm of each image, (B,1,1,1), never quite zero."""
    return torch.linalg.vector_norm(change, dim=(1, 2, 3), keepdim=True).clamp_min_(1e-12)
