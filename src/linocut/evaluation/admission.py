"""Whether a model can be judged at all: it gives logits, one for each class, and an image's do not hang on others'."""

import torch

from linocut.errors import InputError
from linocut.evaluation.case import Model, predict

MOST_SWAY = 0.05  # of the logits' range; rounding sways a network's last bits, batch statistics far more


def require_logits(model: Model, images: torch.Tensor, classes: int, name: str) -> None:
    """Nothing, or an error that says what the model did instead of returning (B, classes) logits."""
    if classes < 2:
        raise InputError(f"the data have {classes} class: whether it is told from others cannot be judged")
    given = images.clone()
    try:
        predict(model, given)
    except InputError as reason:
        raise InputError(f"{name}: {reason}") from reason
    except Exception as reason:
        raise InputError(
            f"{name} fails on images (B,C,H,W) = {tuple(images.shape)}: {type(reason).__name__}: {reason}"
            f"{_hint(reason)}"
        ) from reason
    if not torch.equal(given, images):
        raise InputError(f"{name} changes the images it is given: let it work on a copy (x = x - mean, not x -= mean)")
    with torch.no_grad():
        found = model(images).shape[1]
    if found < classes:
        raise InputError(f"{name} tells {found} classes apart, the data have {classes}: name a model of these data")


def require_backward(model: Model, images: torch.Tensor, name: str) -> None:
    """Nothing, or an error where the model begins a gradient and cannot finish it; one without any is welcome."""
    leaf = images.detach().clone().requires_grad_()
    try:
        logits = model(leaf)
    except Exception as reason:
        raise InputError(
            f"{name} fails on images that carry a gradient, as attacks give them: {type(reason).__name__}: "
            f"{reason}{_hint(reason)}"
        ) from reason
    if not logits.requires_grad:
        return
    try:
        torch.autograd.grad(logits.float().sum(), leaf, allow_unused=True)
    except Exception as reason:
        raise InputError(
            f"{name} fails in the backward: {type(reason).__name__}: {str(reason).splitlines()[0]}; mend it, or judge "
            "it without gradients (torch.no_grad() in its forward)"
        ) from reason


def require_one_answer(model: Model, images: torch.Tensor, name: str) -> None:
    """Nothing, or an error where images that carry a gradient get other logits: attacks would see another model."""
    with torch.no_grad():
        plain = _known(model(images))
    sway = (plain - _known(model(images.detach().clone().requires_grad_()).detach())).abs().max()
    if sway > _allowed(plain):
        raise InputError(
            f"{name} gives other logits where a gradient is asked for (by {float(sway):.3g}): let it answer in one "
            "way, and if that way has no gradient, put its forward under torch.no_grad()"
        )


@torch.no_grad()
def require_own_logits(model: Model, images: torch.Tensor, name: str) -> None:
    """Nothing, or an error where an image's logits change with its batch mates: no example could be judged then."""
    together = _known(model(images))
    for size in (len(images) // 2, 1):
        try:
            apart = torch.cat([_known(model(part)) for part in images.split(max(size, 1))])
        except Exception as reason:
            raise InputError(
                f"{name} takes {len(images)} images and fails on {size}: {type(reason).__name__}: {reason}"
            ) from reason
        if apart.shape != together.shape:
            raise InputError(f"{name} must return logits (B, classes) of {size} too: no squeeze() without a dimension")
        sway = (together - apart).abs().max()
        if sway > _allowed(together):
            raise InputError(
                f"{name} gives an image other logits among other images (by {float(sway):.3g}), as batch normalisation "
                "does in training mode or without running statistics (call eval() on it, or give it some), and noise "
                "that is drawn anew for each batch from one fixed seed (leave the seed out: its expectation is judged)"
            )


def _allowed(logits: torch.Tensor) -> torch.Tensor:
    """By how much logits may sway: little of their range, or what rounding does where they hardly differ."""
    return MOST_SWAY * (logits.max() - logits.min()) + 1e-4 * logits.abs().max()


def _hint(reason: Exception) -> str:
    """What to do about errors that come of how models are judged."""
    if "in-place operation" in str(reason):
        return "; let it work on a copy (x = x.clamp(0, 1), not x.clamp_(0, 1))"
    if "does not require grad" in str(reason):
        return (
            "; models are asked without a gradient too, and their weights carry none: put what climbs inside the "
            "forward under torch.enable_grad(), and adapt copies (weight.detach().clone().requires_grad_())"
        )
    return ""


def _known(logits: torch.Tensor) -> torch.Tensor:
    """In float64, with 0 for what is no number or infinite."""
    return logits.double().nan_to_num(0.0, posinf=0.0, neginf=0.0)
