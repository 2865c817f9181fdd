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
from linocut.evaluation.wrapped import Wrapped


def imported(place: str) -> Callable[..., Any]:
    """The function named by "module:function"; modules of the current folder are found too."""
    module_name, _, function = place.partition(":")
    if not module_name or not function:
        raise InputError(f"wanted module:function, got {place!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as reason:
        itself = module_name == reason.name or module_name.startswith(f"{reason.name}.")
        advice = "run in the folder that holds it, or set PYTHONPATH" if itself else "install what it imports"
        raise InputError(f"{place}: {reason}; {advice}") from None
    except Exception as reason:
        raise InputError(f"{place} cannot be imported: {type(reason).__name__}: {reason}") from reason
    found = getattr(module, function, None)
    if found is None:
        raise InputError(f"{place}: the module {module_name} has no {function}")
    if not callable(found):
        raise InputError(f"{place} is no function but {type(found).__name__}")
    return found


def returned_by(place: str) -> Model:
    """The model that "module:function" returns when it is called; a module that is named itself is one already."""
    make = imported(place)
    if isinstance(make, nn.Module):
        return make
    try:
        made = make()
    except InputError:
        raise
    except (Exception, SystemExit) as reason:
        raise InputError(
            f"{place} is called without arguments and returns the model, but fails: {type(reason).__name__}: {reason}"
        ) from reason
    if not callable(made):
        raise InputError(f"{place} returned {type(made).__name__}: wanted something that maps images to logits")
    return made


class WithoutGradient(Wrapped):
    """A function of images that must not carry a gradient, as NumPy wants them; attacks find it flat.

    What its hooks give, as the network behind its transform, may well take them, and is asked with a gradient first.
    """

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        try:
            return self.model(images)
        except RuntimeError as reason:
            if not _asks_for_no_gradient(reason):
                raise
        return self.model(images.detach())


def refuses_gradient(model: Model, images: torch.Tensor) -> bool:
    """Whether the function fails for no other reason than that the images carry a gradient."""
    try:
        model(images.detach().clone().requires_grad_())
    except RuntimeError as reason:
        return _asks_for_no_gradient(reason)
    except Exception:
        return False  # whatever that is, it is told when the model is tried
    return False


def _asks_for_no_gradient(reason: RuntimeError) -> bool:
    return "requires grad" in str(reason) and "in-place operation" not in str(reason)


class _Straight(torch.autograd.Function):
    """The transform forward, the identity backward (BPDA)."""

    @staticmethod
    def forward(ctx, images: torch.Tensor, transform: Model) -> torch.Tensor:
        given = images.detach()  # which says of itself that it carries no gradient
        changed = transform(given)
        return changed.clone() if changed is given else changed

    @staticmethod
    def backward(ctx, *gradients: torch.Tensor):
        return gradients[0], None


class Preprocessed(nn.Module):
    """Logits of a model behind a preprocessing function, images in [0,1] in and out of it.

    `alone` says whether the model takes images without it: not where it gives them another shape or range.
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
        alone: bool = True,
    ):
        super().__init__()
        self.transform, self.model, self.alone = transform, model, alone
        if surrogate is None:
            assert probe is not None
            changed = _tried(transform, probe)
            self.alone = changed.shape == probe.shape and _takes(model, probe)
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
        if name == "none" and self.surrogate == "own":
            raise NotApplicable("this preprocessing's own gradient is the true one already")
        if name == "identity" and not self.alone:
            raise NotApplicable("the model takes no images without this preprocessing, so an identity cannot stand in")
        return Preprocessed(self.transform, self.model, surrogate=name, alone=self.alone)

    def undefended(self) -> Model:
        """The model without its preprocessing."""
        if not self.alone:
            raise NotApplicable("the model takes no images without this preprocessing")
        return self.model


@torch.no_grad()
def _takes(model: Model, images: torch.Tensor) -> bool:
    try:
        model(images.clone())
    except Exception:  # of any kind: it is a stranger's
        return False
    return True


@torch.no_grad()
def _tried(transform: Model, images: torch.Tensor) -> torch.Tensor:
    """What the function makes of these images, if it is a tensor of their kind and the images stay as they were."""
    given = images.clone()
    try:
        changed = transform(given)
    except Exception as reason:
        raise InputError(
            f"the preprocessing fails on images {tuple(images.shape)}: {type(reason).__name__}: {reason}"
        ) from reason
    if not torch.equal(given, images):
        raise InputError("the preprocessing changes the images it is given: let it work on a copy")
    if not isinstance(changed, torch.Tensor) or changed.dtype != images.dtype:
        got = f"a tensor of {changed.dtype}" if isinstance(changed, torch.Tensor) else f"a {type(changed).__name__}"
        raise InputError(f"the preprocessing returns {got}: wanted a tensor of {images.dtype}, as it was given")
    if not bool(changed.isfinite().all()):
        raise InputError("the preprocessing returns values that are no numbers or infinite: wanted images in [0,1]")
    return changed


def has_gradient(transform: Model, images: torch.Tensor) -> bool:
    """Whether the function, which takes these images, passes a finite gradient that is not all zero back to them."""
    leaf = images.detach().clone().requires_grad_()
    try:
        with torch.enable_grad():
            out = transform(leaf)
            if not out.requires_grad:
                return False
            (gradient,) = torch.autograd.grad(out.square().sum(), leaf, allow_unused=True)
    except Exception:  # NumPy refuses what carries a gradient; a backward may have been broken in place
        return False
    return gradient is not None and bool(gradient.isfinite().all()) and bool(gradient.any())
