"""What every transform module is: keyword settings that make it again, a backward rule, a backend."""

import copy
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from torch import Tensor, nn

from linocut.errors import InputError
from linocut.transform.kernels.dispatch import check_name
from linocut.transform.surrogate import check_surrogate


class TransformModule(nn.Module):
    """A module without parameters or state; `settings` are all its keyword arguments."""

    def __init__(self, settings: dict[str, Any]):
        super().__init__()
        self._surrogate, softness = settings["surrogate"], settings.get("softness", 0.1)
        self._backend, validate = check_name(settings["backend"]), settings["validate"]
        check_surrogate(self._surrogate, softness)
        self._softness = float(softness)
        if validate not in (None, True, False):
            raise InputError(f"validate must be True, False or None (on the CPU), got {validate!r}")
        self._validate = None if validate is None else bool(validate)
        self._settings = {key: _plain(value) for key, value in settings.items()}

    def settings(self) -> dict[str, Any]:
        """The keyword arguments that make this module again; all of them can be written as JSON."""
        return copy.deepcopy(self._settings)

    def with_surrogate(self, surrogate: str) -> Self:
        """The same transform with another backward rule."""
        return type(self)(**{**self._settings, "surrogate": surrogate})

    def extra_repr(self) -> str:
        shown = {"eps": lambda eps: f"{255 * eps:.6g}/255"}
        return ", ".join(f"{key}={shown.get(key, repr)(value)}" for key, value in self._settings.items())


def looks_at_values(validate: bool | None, x: Tensor) -> bool:
    """On CUDA a look at the values would make the device wait, so there it must be asked for."""
    return x.device.type == "cpu" if validate is None else validate


def _plain(value: Any) -> Any:
    """The setting as JSON can hold it: numbers of whatever make become Python's own."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.bool):
        return bool(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)
