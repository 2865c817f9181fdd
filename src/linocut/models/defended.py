"""A transform and a network as one: the only thing an attack sees."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from linocut.errors import InputError

if TYPE_CHECKING:
    from linocut.models.card import Card


class Defended(nn.Module):
    """Logits of images in [0,1]: transform, normalise, network. Either of the first two may be absent.

    The hooks `with_surrogate`, `frozen` and `undefended` give the same network behind another front;
    they share its weights and its mode. Without a transform that offers it, a hook is absent
    (`hasattr` is False), so that an attack can say "not applicable".
    """

    mean: torch.Tensor | None
    std: torch.Tensor | None

    def __init__(
        self,
        transform: nn.Module | None,
        model: nn.Module,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ):
        super().__init__()
        if (mean is None) != (std is None):
            raise InputError("mean and std go together: give both or neither")
        if transform is not None:
            _check_part("transform", transform)
        _check_part("model", model)
        self.transform = transform
        self.model = model
        normalisation = (None, None) if mean is None or std is None else _per_channel(mean, std)
        for name, values in zip(("mean", "std"), normalisation, strict=True):
            self.register_buffer(name, values, persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.transform is not None:
            images = self.transform(images)
        if self.mean is not None and self.std is not None:
            if images.shape[1] != len(self.mean):  # one would be broadcast to the other in silence
                found, wanted = images.shape[1], len(self.mean)
                raise InputError(f"images of {found} channels, mean and std of {wanted}: give one value a channel")
            images = (images - self.mean) / self.std
        return self.model(images)

    def save_pretrained(self, folder: str | Path, card: "Card") -> None:
        """Write config.json, model.safetensors and a README card, as Hugging Face's tools lay them out."""
        from linocut.models.pretrained import save_pretrained

        save_pretrained(folder, self, card)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> "Defended":
        """The model in a local folder, in eval mode on the CPU; nothing is ever downloaded."""
        from linocut.models.pretrained import from_pretrained

        return from_pretrained(folder)

    # Properties, because one that raises AttributeError makes hasattr False.
    @property
    def with_surrogate(self) -> Callable[[str], "Defended"]:
        """with_surrogate(name): the transform with another backward rule, before the same network."""
        turn = self._of_transform("with_surrogate")
        return lambda name: self._behind(turn(name))

    @property
    def frozen(self) -> Callable[[torch.Tensor], "Defended"]:
        """frozen(images): the transform with the palettes of these images, before the same network."""
        freeze = self._of_transform("frozen")
        return lambda images: self._behind(freeze(images))

    @property
    def undefended(self) -> Callable[[], "Defended"]:
        """undefended(): the same network without the transform."""
        if self.transform is None:
            raise AttributeError("there is no transform to take away")
        return lambda: self._behind(None)

    def before(self, network: nn.Module) -> "Defended":
        """The same transform and normalisation before another network."""
        other = self._behind(self.transform)
        other.model = network
        return other

    def _of_transform(self, hook: str) -> Callable:
        if self.transform is None:
            raise AttributeError(f"without a transform there is no {hook}")
        return getattr(self.transform, hook)

    def _behind(self, transform: nn.Module | None) -> "Defended":
        other = Defended(transform, self.model)
        other.mean, other.std, other.training = self.mean, self.std, self.training
        return other


def _check_part(name: str, part: Any) -> None:
    """Raise unless the part can be called on images."""
    if isinstance(part, str | os.PathLike):
        raise InputError(f"{name} is the path {str(part)!r}, wanted a module: linocut.load(folder) reads a saved one")
    if isinstance(part, type):
        raise InputError(f"{name} is the class {part.__name__}, wanted a module made of it: {part.__name__}(...)")
    if not callable(part):
        raise InputError(f"{name} is a {type(part).__name__}, wanted a module that takes images (B,C,H,W)")


def _per_channel(mean: Sequence[float], std: Sequence[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and std as (C,1,1) each."""
    try:
        both = torch.tensor([(float(m), float(s)) for m, s in zip(mean, std, strict=True)])
    except (TypeError, ValueError, OverflowError):
        both = torch.empty(0)
    if not both.numel() or not both.isfinite().all() or not (both[:, 1] > 0).all():
        raise InputError(f"mean and std need one finite number a channel, std above 0, got {mean!r}, {std!r}")
    means, stds = both.T.contiguous().view(2, -1, 1, 1)
    return means, stds
