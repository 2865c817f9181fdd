"""What figures need of a few examples: the loss at each step, the image, what the network saw of it, its palette."""

import torch

from linocut.attacks.hooks import NotApplicable, own_palettes
from linocut.evaluation.case import Model

SHOWN = 16  # so many examples of a sample, its first ones


@torch.no_grad()
def of(model: Model, images: torch.Tensor, trace: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """The tensors of a figures shard (see shards.py), those that this model has."""
    found = {"image": images}
    if trace is not None:
        found["trace"] = trace.float()
    transform = getattr(model, "transform", None)
    if callable(transform) and hasattr(model, "undefended"):  # else it may be anything that a stranger calls so
        found["transformed"] = transform(images).clone()  # it may give the very images back
        try:
            found["palette"], exists = own_palettes(model, images)
            found["num_colors"] = exists.sum(dim=1)
        except NotApplicable:
            pass  # a transform without a palette
    return found
