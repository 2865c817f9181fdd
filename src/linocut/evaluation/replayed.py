"""A model whose passes over small batches on a GPU are recorded once and replayed.

Launching the kernels of a small batch takes the processor longer than running them takes the GPU. A recorded pass
(a CUDA graph) is launched as one; it runs the same kernels on the same memory, so its logits and gradients are those
of the model. Where recording is not possible, the model runs as it is.
"""

import logging
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from linocut.evaluation.wrapped import HOOKS

LOG = logging.getLogger(__name__)
LEAST_STEP = 32
LARGEST = 1024 * 3 * 32 * 32  # values in a batch; beyond it the kernels are the longer part
SEEN_BEFORE = 3  # a size that only passes by is not worth recording
Function = Callable[[torch.Tensor], torch.Tensor]


def filled(model: Function, images: torch.Tensor) -> torch.Tensor:
    """The model's logits, computed in a batch of the next usual size: a GPU plans convolutions anew for every size."""
    count = len(images)
    missing = usual_size(count) - count
    if missing:
        images = torch.cat([images, images[-1:].expand(missing, -1, -1, -1)])
    return model(images)[:count]


def usual_size(count: int) -> int:
    """The next multiple of 32, or of a coarser step: from 256 on, eight sizes for each doubling."""
    step = max(LEAST_STEP, 1 << (count - 1).bit_length() >> 4) if count else 1
    return -(-count // step) * step


class Replayed(nn.Module):
    """The model behind recordings of its passes, one for each size of batch, format and whether it needs a gradient.

    All recordings share one piece of memory. A pass with a gradient keeps it until autograd has let go of it; whatever
    comes in between runs unrecorded.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self._seen: Counter[tuple] = Counter()
        self._passes: dict[tuple, Pass] = {}
        self._pool: Any = None
        self._pending: Callable[[], object] = lambda: None
        self.failure: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name) if name in (*HOOKS, "transform") else super().__getattr__(name)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return filled(self._run, images)

    def _run(self, images: torch.Tensor) -> torch.Tensor:
        small = 0 < images.numel() <= LARGEST
        if not (images.is_cuda and small) or self.failure is not None or self._pending() is not None:
            return self.model(images)
        wants_gradient = torch.is_grad_enabled() and images.requires_grad
        key = (tuple(images.shape), images.dtype, images.device, wants_gradient, *_format())
        found = self._passes.get(key)
        if found is None:
            self._seen[key] += 1
            if self._seen[key] <= SEEN_BEFORE or (found := self._record(key, images, wants_gradient)) is None:
                return self.model(images)
        if not wants_gradient:
            return found.forward(images)
        token = _Token()
        self._pending = weakref.ref(token)
        return _Replay.apply(images, found, token)

    def _record(self, key: tuple, images: torch.Tensor, wants_gradient: bool) -> "Pass | None":
        try:
            if self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            made = Pass(self.model, images, wants_gradient, self._pool)
            if not made.agrees_with(self.model, 1 - images.detach()):
                raise RuntimeError("a replayed pass gives other logits or gradients than the model")
            self._passes[key] = made
        except RuntimeError as error:
            self.failure = f"{type(error).__name__}: {error}"[:500]
            self._passes.clear()  # their memory is of use to the model
            LOG.info("passes could not be recorded and are launched piece by piece: %s", self.failure)
            return None
        return self._passes[key]


class Pass:
    """One recorded pass: a forward, and a backward to the images where that is wanted."""

    def __init__(self, model: Function, images: torch.Tensor, wants_gradient: bool, pool: Any):
        self.images = images.detach().clone().requires_grad_(wants_gradient)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        enabled, dtype = _format()
        # A cache of cast weights would outlive the recording.
        with torch.autocast("cuda", dtype=dtype, enabled=enabled, cache_enabled=False):
            with torch.cuda.stream(stream):
                self._once(model, wants_gradient)  # may compile, and a compiler waits
                with _nothing_waits():
                    self._once(model, wants_gradient)
            torch.cuda.current_stream().wait_stream(stream)
            self._forward = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._forward, pool=pool, stream=stream, capture_error_mode="thread_local"):
                self.logits = model(self.images)
            self._backward: torch.cuda.CUDAGraph | None = None
            if wants_gradient:
                self.slope = torch.ones_like(self.logits)
                self._backward = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._backward, pool=pool, stream=stream, capture_error_mode="thread_local"):
                    (self.gradient,) = torch.autograd.grad(self.logits, self.images, self.slope)
        self.logits = self.logits.detach()
        self._spent = False  # a backward reuses the memory of what its forward had kept

    def _once(self, model: Function, wants_gradient: bool) -> None:
        logits = model(self.images)
        if wants_gradient:
            torch.autograd.grad(logits, self.images, torch.ones_like(logits))

    def agrees_with(self, model: Function, others: torch.Tensor) -> bool:
        """Whether images that were not recorded get what the model gives: what Python decides is decided but once."""
        mine, true = self.forward(others), model(others.requires_grad_(self.images.requires_grad))
        if not _alike(mine, true.detach()):
            return False
        if self._backward is None:
            return True
        slope = torch.ones_like(true)
        return _alike(self.backward(slope), torch.autograd.grad(true, others, slope)[0])

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.images.detach().copy_(images)
        self._forward.replay()
        self._spent = False
        return self.logits.clone()

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        assert self._backward is not None
        if self._spent:
            self._forward.replay()
        self.slope.copy_(slope)
        self._backward.replay()
        self._spent = True
        return self.gradient.clone()


class _Token:
    """Lives as long as a pass may still be asked for its gradient."""


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: torch.Tensor, recorded: Pass, token: _Token) -> torch.Tensor:
        ctx.recorded, ctx.token = recorded, token
        return recorded.forward(images)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: torch.Tensor) -> tuple[torch.Tensor, None, None]:  # type: ignore[override]
        return ctx.recorded.backward(slope), None, None


@contextmanager
def _nothing_waits() -> Iterator[None]:
    """An error where the processor waits for the device: a recording that fails on that may leave torch unusable."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Synchronization debug mode")  # that it is a prototype
        try:
            torch.cuda.set_sync_debug_mode("error")
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)


def _alike(mine: torch.Tensor, true: torch.Tensor) -> bool:
    return torch.allclose(mine.float(), true.float(), rtol=0.01, atol=0.01 * float(true.abs().max()), equal_nan=True)


def _format() -> tuple[bool, torch.dtype]:
    """The format that autocast asks for now."""
    return torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
