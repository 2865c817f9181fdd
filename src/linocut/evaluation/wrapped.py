"""Models behind another front, which keep the hooks that attacks ask for."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from linocut.attacks.gradients import in_full
from linocut.attacks.hooks import Model

DRAWS = 20
HOOKS = ("with_surrogate", "frozen", "undefended")


class Wrapped:
    """A callable around a model; a hook of the model gives the hooked model in the same wrapping."""

    def __init__(self, model: Model):
        self.model = model

    def around(self, model: Model) -> "Wrapped":
        return type(self)(model)

    def __getattr__(self, name: str):
        if name == "transform":
            return self.model.transform  # type: ignore[attr-defined]
        if name not in HOOKS:
            raise AttributeError(name)
        hook = getattr(self.model, name)
        return lambda *arguments: self.around(hook(*arguments))


def unwrapped(model: object) -> object:
    """The model itself: wrappings are plain functions, and a module inside has a mode of its own."""
    while isinstance(model, Wrapped):
        model = model.model
    return model


class Expectation(Wrapped):
    """A randomised defence as one deterministic classifier: logarithms of its mean class probabilities.

    Draw i of `draws` always runs under seed i, so the mean is a fixed function of the batch and attacks can climb
    it. That holds for the generators of the process (torch's, NumPy's and Python's), which are put back after each
    forward, not for one that the model made for itself. Noise is drawn for a whole batch, so another batch gets other
    draws.
    """

    def __init__(self, model: Model, draws: int = DRAWS):
        super().__init__(model)
        self.draws = draws

    def around(self, model: Model) -> "Expectation":
        return Expectation(model, self.draws)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        devices = [images.device] if images.device.type == "cuda" else []
        total: torch.Tensor | None = None
        for draw in range(self.draws):
            with torch.random.fork_rng(devices), _other_generators(draw):
                torch.manual_seed(draw)
                chances = in_full(self.model(images)).softmax(dim=1)
            total = chances if total is None else total + chances
        assert total is not None
        return (total / self.draws).clamp_min(torch.finfo(total.dtype).tiny).log()


@contextmanager
def _other_generators(seed: int) -> Iterator[None]:
    """NumPy's and Python's own generators under a seed; as they were afterwards."""
    numpys, pythons = np.random.get_state(), random.getstate()
    np.random.seed(seed)
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(numpys)
        random.setstate(pythons)
