"""Other people's models: found by module:function, put behind their own preprocessing."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from linocut.attacks.hooks import NotApplicable
from linocut.errors import InputError
from linocut.evaluation.case import Model


def imported(place: str) -> Callable[..., Any]:
    """The function named by "module:function"; modules of the current folder are found too."""
    module_name, _, function = place.partition(":")
    if not module_name or not function:
        raise InputError(f"wanted module:function, got {place!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module_name), function)
    except ModuleNotFoundError as reason:
        raise InputError(f"{place}: {reason}; run in the folder that holds it, or set PYTHONPATH") from None
    except AttributeError:
        raise InputError(f"{place}: the module {module_name} has no {function}") from None
    if not callable(found):
        raise InputError(f"{place} is no function but {type(found).__name__}")
    return found


class _Straight(torch.autograd.Function):
    """The transform forward, the identity backward (BPDA)."""

    @staticmethod
    def forward(ctx, images: torch.Tensor, transform: Model) -> torch.Tensor:
        changed = transform(images)
        return changed.clone() if changed is images else changed

    @staticmethod
    def backward(ctx, *gradients: torch.Tensor):
        return gradients[0], None


class Preprocessed(nn.Module):
    """Logits of a model behind a preprocessing function, images in [0,1] in and out of it.

    `surrogate` says what the backward does: "own" (the function's gradient), "identity", or "none" (no gradient
    passes). Left out, it is "own" where the function has a gradient at the probe images and "identity" where not.
    """

    def __init__(
        self,
        transform: Model,
        model: Model,
        *,
        probe: torch.Tensor | None = None,
        surrogate: str | None = None,
    ):
        super().__init__()
        self.transform, self.model = transform, model
        if surrogate is None:
            assert probe is not None
            changed = _tried(transform, probe)
            surrogate = "own" if has_gradient(transform, probe) else "identity"
            if surrogate == "identity" and changed.shape != probe.shape:
                raise InputError(
                    f"the preprocessing turns {tuple(probe.shape)} into {tuple(changed.shape)} and has no "
                    "gradient, so an identity cannot stand in: give it a gradient of its own"
                )
        self.surrogate = surrogate

    def extra_repr(self) -> str:
        return f"surrogate={self.surrogate}"

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.surrogate == "own":
            return self.model(self.transform(images))
        if self.surrogate == "identity":
            return self.model(_Straight.apply(images, self.transform))
        return self.model(self.transform(images.detach()))

    def with_surrogate(self, name: str) -> "Preprocessed":
        """The same behind another backward rule; "bpda" and "soft" mean nothing here."""
        if name not in ("own", "identity", "none"):
            raise NotApplicable(f"this preprocessing has no {name!r} gradient")
        return Preprocessed(self.transform, self.model, surrogate=name)

    def undefended(self) -> Model:
        """The model without its preprocessing."""
        return self.model


@torch.no_grad()
def _tried(transform: Model, images: torch.Tensor) -> torch.Tensor:
    """What the function makes of these images, if it is a tensor of their kind and the images stay as they were."""
    given = images.clone()
    changed = transform(given)
    if not torch.equal(given, images):
        raise InputError("the preprocessing changes the images it is given: let it work on a copy")
    if not isinstance(changed, torch.Tensor) or changed.dtype != images.dtype:
        got = f"a tensor of {changed.dtype}" if isinstance(changed, torch.Tensor) else f"a {type(changed).__name__}"
        raise InputError(f"the preprocessing returns {got}: wanted a tensor of {images.dtype}, as it was given")
    return changed


def has_gradient(transform: Model, images: torch.Tensor) -> bool:
    """Whether the function passes a finite gradient that is not all zero back to these images."""
    leaf = images.detach().clone().requires_grad_()
    with torch.enable_grad():
        try:
            out = transform(leaf)
        except RuntimeError as reason:
            if "requires grad" not in str(reason):  # NumPy refuses tensors that carry a gradient
                raise
            return False
        if not out.requires_grad:
            return False
        (gradient,) = torch.autograd.grad(out.square().sum(), leaf, allow_unused=True)
    return gradient is not None and bool(gradient.isfinite().all()) and bool(gradient.any())
