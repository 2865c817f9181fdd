"""What an attack may ask of a model beyond logits, by name alone, so that any callable can be attacked.

with_surrogate(name)   the same forward with another backward rule
frozen(images)         the model painting with the palettes of these images, row by row
undefended()           the same network without its transform
transform.explain(x)   one record per image, of which attacks read `.palette`, (K, C) in the unit range

A quicker copy of a model says so (`is_quick_copy`), and offers two more:

judge(images)          logits of the true model: only what the judge calls misclassified counts, and an example leaves
                       no sooner
finest()               a copy that tells small differences apart, for attacks that live on them
"""

from collections.abc import Callable
from typing import Any

import torch

from linocut.errors import InputError

Model = Callable[[torch.Tensor], torch.Tensor]


class NotApplicable(InputError):
    """This attack has nothing to hold on to in this model; a suite records that and goes on."""


def hook(model: Model, name: str) -> Callable[..., Any]:
    """The model's own method of this name; NotApplicable where it has none."""
    found = getattr(model, name, None)
    if not callable(found):
        raise NotApplicable(f"the model offers no `{name}`, which this attack needs; see linocut.attacks.hooks")
    return found


def judge_of(model: Model) -> Model | None:
    """The true model behind a quicker copy; None where the model speaks for itself."""
    return _method(model, "judge")


def finest_of(model: Model) -> Model:
    """The model, or the finest copy of it that a quick one offers."""
    finest = _method(model, "finest")
    return model if finest is None else finest()


def _method(model: Model, name: str) -> Callable[..., Any] | None:
    """A quick copy's method of this name; a stranger's may be called so too."""
    return getattr(model, name) if getattr(model, "is_quick_copy", False) is True else None


def own_palettes(model: Model, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The palette the model's transform finds in each image: colours (B,K,C), and which of them exist (B,K).

    Images have different numbers of colours, so K is the largest and the rest is padding.
    """
    explain = hook(getattr(model, "transform", None), "explain")  # type: ignore[arg-type]
    found = [record.palette for record in explain(images)]
    if any(palette is None for palette in found):
        raise NotApplicable("the model's transform paints with no palette, which this attack needs")
    palettes = [torch.as_tensor(palette, dtype=images.dtype) for palette in found]
    most = max((len(palette) for palette in palettes), default=0)
    colors = torch.zeros(len(palettes), most, images.shape[1], dtype=images.dtype, device="cpu")
    exists = torch.zeros(len(palettes), most, dtype=torch.bool, device="cpu")
    for row, palette in enumerate(palettes):
        colors[row, : len(palette)] = palette.cpu()
        exists[row, : len(palette)] = True
    return colors.to(images.device), exists.to(images.device)
