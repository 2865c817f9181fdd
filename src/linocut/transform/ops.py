"""The transform's passes, differentiable: as operators of PyTorch (namespace linocut) where a program is being
compiled or recorded, as plain autograd functions where it is not. Both run the same code, forward and backward.

The palette search has loops whose length depends on the pixels; inside an operator they stay out of a compiled graph.
An operator's way through the dispatcher costs a tenth of a millisecond each way, more than the kernels of a small
batch; a plain function's costs almost nothing.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from linocut.errors import InputError
from linocut.transform import passes
from linocut.transform.passes import Backward, blur_numbers, palette_numbers

__all__ = ["blur_numbers", "discretize", "paint_fixed", "palette_numbers", "repaint"]

discretize_op = torch.library.custom_op("linocut::discretize", passes.discretize, mutates_args=())
repaint_op = torch.library.custom_op("linocut::repaint", passes.repaint, mutates_args=())
paint_fixed_op = torch.library.custom_op("linocut::paint_fixed", passes.paint_fixed, mutates_args=())
blur_transpose_op = torch.library.custom_op("linocut::blur_transpose", passes.blur_transpose, mutates_args=())
blur_along_op = torch.library.custom_op("linocut::blur_along", passes.blur_along, mutates_args=())
soft_step_op = torch.library.custom_op("linocut::through_soft_codebook", passes.soft_step, mutates_args=())


@discretize_op.register_fake
def _(x, kernel_sizes, limits, palette, surrogate, softness, backend, check):
    B, C, H, W = x.shape
    K = passes.palette_rule(palette).most_colors(C, H, W) if palette else 0
    return (
        x.new_empty((B, C, H, W)),
        x.new_empty((B, C, H, W), dtype=torch.int16),
        x.new_empty((B, C, H, W), dtype=torch.uint8),
        x.new_empty((B, K, C), dtype=torch.int16),
        x.new_empty((B,), dtype=torch.int32),
    )


@repaint_op.register_fake
def _(x, palette, num_colors, kernel_sizes, limits, backend, check):
    return x.new_empty(x.shape), x.new_empty(x.shape, dtype=torch.uint8)


@paint_fixed_op.register_fake
def _(x, colors, surrogate, softness, backend, check):
    return x.new_empty(x.shape), x.new_empty(x.shape, dtype=torch.int16)


@blur_transpose_op.register_fake
def _(grad, level, kernel_sizes, limits, backend):
    return grad.new_empty(grad.shape)


@blur_along_op.register_fake
def _(direction, level, kernel_sizes, limits, backend):
    return direction.new_empty(direction.shape)


@soft_step_op.register_fake
def _(grad, y, palette, num_colors, softness, backend):
    return grad.new_empty(grad.shape)


_COMPILED = Backward(blur_transpose_op, blur_along_op, soft_step_op)
blur_transpose_op.register_autograd(_COMPILED.of_blur_transpose, setup_context=passes.keep_for_step)
blur_along_op.register_autograd(_COMPILED.of_blur_along, setup_context=passes.keep_for_step)
soft_step_op.register_autograd(passes.refuse_soft_again)
discretize_op.register_autograd(_COMPILED.discretize, setup_context=passes.keep_for_discretize)
repaint_op.register_autograd(_COMPILED.repaint, setup_context=passes.keep_for_repaint)
paint_fixed_op.register_autograd(_COMPILED.paint_fixed, setup_context=passes.keep_for_paint_fixed)


def _function(run: Callable, per_image: int, keep: Callable | None, back: Callable) -> Callable:
    """A pass or a step of its backward as an autograd function, with a row for each image in its first arguments.

    A second derivative is that of the backward as it stands: of the frozen blur's transpose, which is linear.
    """

    class Pass(torch.autograd.Function):
        @staticmethod
        def forward(*arguments):
            return run(*arguments)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.set_materialize_grads(False)
            if not isinstance(output, Tensor):  # only the first output has a gradient
                ctx.mark_non_differentiable(*output[1:])
            if keep is not None:
                keep(ctx, inputs, output)

        @staticmethod
        def backward(ctx, *gradients):
            if gradients[0] is None:  # what comes after cut the graph
                return (None,) * len(ctx.needs_input_grad)
            return back(ctx, *gradients)

        @staticmethod
        def vmap(info, in_dims, *arguments):
            if any(isinstance(dim, int) for dim in in_dims[per_image:]):
                raise InputError(f"{run.__name__} maps over images: give all of them the same codes")
            rows = [
                (part.expand(info.batch_size, *part.shape) if dim is None else part.movedim(dim, 0)).flatten(0, 1)
                for part, dim in zip(arguments[:per_image], in_dims, strict=False)
            ]
            found = Pass.apply(*rows, *arguments[per_image:])  # an image has one output, whatever batch it is in
            if isinstance(found, Tensor):
                return found.unflatten(0, (info.batch_size, -1)), 0
            return tuple(part.unflatten(0, (info.batch_size, -1)) for part in found), (0,) * len(found)

    # torch asks for it at every call, and takes longer to find it than for all else here.
    Pass.forward.__signature__ = inspect.signature(Pass.forward)  # type: ignore[attr-defined]
    return Pass.apply


def _step(function: Callable, operator: Callable) -> Callable:
    """The step of a backward as a function, but as an operator for many gradients at once of torch's older kind.

    So they come of `torch.autograd.grad(is_grads_batched=True)`; a function cannot take them, an operator is called
    for one after the other.
    """
    is_batched = getattr(torch._C._functorch, "is_legacy_batchedtensor", None)

    def step(grad: Tensor, *rest: Any) -> Tensor:
        return (operator if is_batched is not None and is_batched(grad) else function)(grad, *rest)

    return step


_EAGER: Backward = Backward(
    _step(
        _function(
            passes.blur_transpose, 2, passes.keep_for_step, lambda ctx, grad: _EAGER.of_blur_transpose(ctx, grad)
        ),
        blur_transpose_op,
    ),
    _step(
        _function(passes.blur_along, 2, passes.keep_for_step, lambda ctx, grad: _EAGER.of_blur_along(ctx, grad)),
        blur_along_op,
    ),
    _step(_function(passes.soft_step, 4, None, passes.refuse_soft_again), soft_step_op),
)
_discretize = _function(passes.discretize, 1, passes.keep_for_discretize, _EAGER.discretize)
_repaint = _function(passes.repaint, 3, passes.keep_for_repaint, _EAGER.repaint)
_paint_fixed = _function(passes.paint_fixed, 1, passes.keep_for_paint_fixed, _EAGER.paint_fixed)


def _recorded(x: Tensor) -> bool:
    """Whether the call will be looked at rather than run on numbers: compiled, traced, or on a tensor without any."""
    return (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()
        or is_in_torch_dispatch_mode()
        or type(x) not in (Tensor, Parameter)
        or x.is_meta
    )


def discretize(x: Tensor, *settings: Any) -> Any:
    """passes.discretize, with its backward."""
    return (discretize_op if _recorded(x) else _discretize)(x, *settings)


def repaint(x: Tensor, *settings: Any) -> Any:
    """passes.repaint, with its backward."""
    return (repaint_op if _recorded(x) else _repaint)(x, *settings)


def paint_fixed(x: Tensor, *settings: Any) -> Any:
    """passes.paint_fixed, with its backward."""
    return (paint_fixed_op if _recorded(x) else _paint_fixed)(x, *settings)
