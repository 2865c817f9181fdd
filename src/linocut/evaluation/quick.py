"""A quicker copy of a model to search on: its network compiled, its matrix products in sixteen bits.

It does not decide what breaks the model. An attack that meets such a copy asks the true model whenever the copy calls
a point misclassified (see linocut.attacks.hooks), and the ledger's rows are the true model's.
"""

import logging
import warnings
from typing import Any

import torch
from torch import nn

from linocut.attacks.gradients import in_full
from linocut.errors import InputError
from linocut.evaluation.case import Model, at_rest
from linocut.evaluation.finer import made_finer
from linocut.evaluation.levels import all_bits
from linocut.evaluation.replayed import LARGEST, Replayed, filled
from linocut.evaluation.wrapped import HOOKS, Wrapped
from linocut.models import Defended

LOG = logging.getLogger(__name__)
LEAST_COSINE = 0.9
USUAL_BATCH = 512
ROUGHER = 2.0  # how many times as far as the model's own logits those in float16 may be off


class UnfaithfulCopy(InputError):
    """A quick copy whose gradients are not the model's."""


class Quick(Wrapped):
    """The model, computed in `dtype`, with the true one as its judge; `fine` is for what asks for the finest copy."""

    is_quick_copy = True  # see linocut.attacks.hooks

    def __init__(self, model: Model, judge: Model, *, dtype: torch.dtype, fine: torch.dtype = torch.float32):
        super().__init__(model)
        self.true, self.dtype, self.fine = judge, dtype, fine

    def around(self, model: Model) -> "Quick":
        return Quick(model, self.true, dtype=self.dtype, fine=self.fine)

    def finest(self) -> "Quick":
        """The same copy in the finer format."""
        return Quick(self.model, self.true, dtype=self.fine, fine=self.fine)

    @property
    def original(self) -> Model:
        """The true model without recordings."""
        return self.true.model if isinstance(self.true, Replayed) else self.true

    def judge(self, images: torch.Tensor) -> torch.Tensor:
        """The true model's logits."""
        return filled(self.true, images)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        dtype = self.dtype
        if self.fine == torch.float16 and not torch.is_grad_enabled():
            dtype = self.fine  # as quick, finer, and one format less to compile for
        # No cache of cast weights: recordings have none, and a network is compiled anew where that changes.
        with torch.autocast(images.device.type, dtype=dtype, enabled=dtype != torch.float32, cache_enabled=False):
            return in_full(self.model(images))


class Compiled(nn.Module):
    """A network compiled once for all batch sizes; what its hooks give is not compiled."""

    def __init__(self, network: nn.Module):
        super().__init__()
        # Padding matrix products would compile the network anew for small and for large batches.
        self.network: Any = torch.compile(network, options={"shape_padding": False})
        self.layout = layout_of(network)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name) if name in (*HOOKS, "transform") else super().__getattr__(name)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return filled(self._run, images)

    def _run(self, images: torch.Tensor) -> torch.Tensor:
        images = images.contiguous(memory_format=self.layout)
        torch._dynamo.mark_dynamic(images, 0)
        with warnings.catch_warnings():
            # The compiler looks at .grad of its input, which comes from a transform, and warns about that itself.
            warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf")
            warnings.filterwarnings("ignore", "TensorFloat32 tensor cores")  # logits are to keep all their bits
            return self.network(images)


def layout_of(network: nn.Module) -> torch.memory_format:
    """The layout that the network's kernels lie in."""
    kernels = [each for each in network.parameters() if each.ndim == 4]
    last = [not each.is_contiguous() and each.is_contiguous(memory_format=torch.channels_last) for each in kernels]
    return torch.channels_last if any(last) else torch.contiguous_format


def searcher(model: Model, *, half: bool, compiled: bool, probe: torch.Tensor) -> Model:
    """What the attacks see: the model itself where nothing quicker is asked for.

    Of a Defended model the network is compiled and the transform runs as it is; another module is compiled whole.
    The gradients at the `probe` images must be those of the model, so that a compiler's slip is no robustness.
    """
    if not (half or compiled):
        return model
    front, judge = model, model
    if compiled and not isinstance(model, nn.Module):
        raise InputError(
            "only a module that repeats itself can be compiled, not a function or a random model: leave --compile out"
        )
    if isinstance(model, nn.Module):
        inner = model.model if type(model) is Defended else model  # a subclass of it may do more
        if half:
            with at_rest(model):
                seen = model.before(nn.Identity())(probe) if type(model) is Defended else probe
                inner = made_finer(inner, seen, compiled=compiled)
        inner = Compiled(inner) if compiled else inner
        if probe.is_cuda:
            inner, judge = Replayed(inner), Replayed(model)
        front = model.before(inner) if type(model) is Defended else inner
    quick = Quick(front, judge, dtype=torch.bfloat16 if half else torch.float32)
    try:
        with at_rest(model):
            cosine = _agreement(quick, model, probe)
            if half and probe.is_cuda:  # elsewhere float16 gains nothing
                quick.fine = finest_format(quick, model, probe)
    except RuntimeError as reason:
        if not type(reason).__module__.startswith(("torch._dynamo", "torch._inductor", "torch.fx")):
            raise  # the model's own
        told = str(reason).strip().partition("\n")[0]
        raise InputError(f"the model cannot be compiled for all batch sizes ({told}): leave --compile out") from reason
    if not cosine > LEAST_COSINE:
        raise UnfaithfulCopy(
            f"the quick copy's gradients are not the model's (cosine {cosine:.3f}, wanted above {LEAST_COSINE}): "
            "leave --precision and --compile out"
        )
    return quick


@torch.no_grad()
def finest_format(quick: Quick, model: Model, probe: torch.Tensor) -> torch.dtype:
    """float16 where it gives logits about as fine as the model's own on this device, else float32.

    A GPU's convolutions in float32 round their factors to TF32, which has the ten bits of float16. But float16 ends at
    65,504, and a network may go beyond, or may add up rounded sums. Asked in a batch as large as attacks ask: a GPU
    may compute small ones otherwise.
    """
    count = max(len(probe), min(USUAL_BATCH, LARGEST // probe[0].numel()))
    images = probe.repeat(-(-count // len(probe)), 1, 1, 1)[:count]
    with all_bits():
        exact = model(images)
    halves = Quick(quick.model, model, dtype=torch.float16)(images)
    own, error = (float((logits - exact).abs().mean()) for logits in (model(images), halves))
    LOG.info("logits are off by %.3g in the model's own format, by %.3g in float16", own, error)
    return torch.float16 if error <= ROUGHER * own else torch.float32


def _agreement(quick: Model, model: Model, probe: torch.Tensor) -> float:
    """The cosine between the gradients of the largest logits, over all probe images; 1 where both are zero."""
    gradients = []
    for one in (quick, model):
        images = probe.detach().clone().requires_grad_()
        with torch.enable_grad():
            top = one(images).amax(dim=1).sum()
            found = torch.autograd.grad(top, images, allow_unused=True)[0] if top.requires_grad else None
        gradients.append(torch.zeros_like(images) if found is None else found.nan_to_num(0.0))
    first, second = (gradient.flatten().double() for gradient in gradients)
    if not first.any() and not second.any():
        return 1.0
    return float(nn.functional.cosine_similarity(first, second, dim=0))
