"""The transform as PyTorch operators (namespace linocut), opaque to torch.compile, with their backward rules.

The palette search has loops whose length depends on the pixels; inside an operator they stay out of the
graph, and the compiled program runs the code that the eager one runs. Rules travel as lists of integers.
"""

from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Any

import torch
from torch import Tensor

from linocut.transform.kernels.dispatch import backend as kernels
from linocut.transform.kernels.torch_ops import leave
from linocut.transform.settings import NO_BLUR, BlurRule, PaletteRule
from linocut.transform.surrogate import through_soft_codebook
from linocut.transform.validate import check_values


def blur_numbers(rule: BlurRule) -> tuple[list[int], list[int]]:
    """The rule's kernel sizes and limits, as the operators take them."""
    return list(rule.kernel_sizes), list(rule.limits)


def palette_numbers(rule: PaletteRule | None) -> list[int]:
    """The rule's fields in order, as the operators take them; none for a transform without a codebook."""
    return [] if rule is None else [int(value) for value in astuple(rule)]


def _blur_rule(kernel_sizes: Sequence[int], limits: Sequence[int]) -> BlurRule:
    return BlurRule(kernel_sizes=tuple(kernel_sizes), limits=tuple(limits))


def _palette_rule(numbers: Sequence[int]) -> PaletteRule:
    values: dict[str, Any] = {field.name: n for field, n in zip(fields(PaletteRule), numbers, strict=True)}
    return PaletteRule(**values)


@torch.library.custom_op("linocut::discretize", mutates_args=())
def discretize(
    x: Tensor,
    kernel_sizes: Sequence[int],
    limits: Sequence[int],
    palette_rule: Sequence[int],
    surrogate: str,
    softness: float,
    backend: str,
    check: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """T(x), and what its backward needs: blurred eighths, kernel choice, palette, number of colours."""
    if check:
        check_values(x)
    run = kernels(backend, x.device)
    y, level = run.blur(x.contiguous(), _blur_rule(kernel_sizes, limits))
    if not palette_rule:
        nothing = torch.empty((len(x), 0, x.shape[1]), dtype=torch.int16, device=x.device)
        return leave(y), y, level, nothing, torch.zeros(len(x), dtype=torch.int32, device=x.device)
    palette, _, num_colors = run.find_palette(y, _palette_rule(palette_rule))
    return run.paint(y, palette, num_colors), y, level, palette, num_colors


@discretize.register_fake
def _(x, kernel_sizes, limits, palette_rule, surrogate, softness, backend, check):
    B, C, H, W = x.shape
    K = _palette_rule(palette_rule).most_colors(C, H, W) if palette_rule else 0
    return (
        x.new_empty((B, C, H, W)),
        x.new_empty((B, C, H, W), dtype=torch.int16),
        x.new_empty((B, C, H, W), dtype=torch.uint8),
        x.new_empty((B, K, C), dtype=torch.int16),
        x.new_empty((B,), dtype=torch.int32),
    )


@torch.library.custom_op("linocut::repaint", mutates_args=())
def repaint(
    x: Tensor,
    palette: Tensor,
    num_colors: Tensor,
    kernel_sizes: Sequence[int],
    limits: Sequence[int],
    backend: str,
    check: bool,
) -> tuple[Tensor, Tensor]:
    """x blurred by its own edges and painted with given palettes (B,K,C), and its kernel choice."""
    if check:
        check_values(x)
    run = kernels(backend, x.device)
    y, level = run.blur(x.contiguous(), _blur_rule(kernel_sizes, limits))
    return run.paint(y, palette, num_colors), level


@repaint.register_fake
def _(x, palette, num_colors, kernel_sizes, limits, backend, check):
    return x.new_empty(x.shape), x.new_empty(x.shape, dtype=torch.uint8)


@torch.library.custom_op("linocut::paint_fixed", mutates_args=())
def paint_fixed(
    x: Tensor, colors: Tensor, surrogate: str, softness: float, backend: str, check: bool
) -> tuple[Tensor, Tensor]:
    """x painted with one list of codes (K,C) in eighths, and x in eighths, which the soft backward needs."""
    if check:
        check_values(x)
    run = kernels(backend, x.device)
    y, _ = run.blur(x.contiguous(), NO_BLUR)
    return run.paint_linf(y, colors), y


@paint_fixed.register_fake
def _(x, colors, surrogate, softness, backend, check):
    return x.new_empty(x.shape), x.new_empty(x.shape, dtype=torch.int16)


@torch.library.custom_op("linocut::blur_transpose", mutates_args=())
def blur_transpose(
    grad: Tensor, level: Tensor, kernel_sizes: Sequence[int], limits: Sequence[int], backend: str
) -> Tensor:
    """The gradient at the blur's input, its kernel choice frozen."""
    rule = _blur_rule(kernel_sizes, limits)
    return kernels(backend, grad.device).blur_transpose(grad.contiguous(), level, rule)


@blur_transpose.register_fake
def _(grad, level, kernel_sizes, limits, backend):
    return grad.new_empty(grad.shape)


@torch.library.custom_op("linocut::through_soft_codebook", mutates_args=())
def soft_step(grad: Tensor, y: Tensor, palette: Tensor, num_colors: Tensor, softness: float) -> Tensor:
    """The gradient at the blurred pixels, had the codebook been soft."""
    return through_soft_codebook(grad.contiguous(), y, palette, num_colors, softness)


@soft_step.register_fake
def _(grad, y, palette, num_colors, softness):
    return grad.new_empty(grad.shape)


def _keep_for_discretize(ctx, inputs, output):
    _, ctx.kernel_sizes, ctx.limits, palette_rule, ctx.surrogate, ctx.softness, ctx.backend, _ = inputs
    if ctx.surrogate == "soft" and not palette_rule:
        ctx.surrogate = "bpda"  # a blur alone has no codebook to soften
    _, y, level, palette, num_colors = output
    needed = {"bpda": (level,), "soft": (level, y, palette, num_colors)}
    ctx.save_for_backward(*needed.get(ctx.surrogate, ()))


def _back_through_discretize(ctx, grad, *_):
    if ctx.surrogate == "none":
        grad = torch.zeros_like(grad)
    elif ctx.surrogate != "identity":
        level, *codebook = ctx.saved_tensors
        if ctx.surrogate == "soft":
            grad = soft_step(grad, *codebook, ctx.softness)
        grad = _back_through_blur(ctx, grad, level)
    return grad, *[None] * 7


def _keep_for_repaint(ctx, inputs, output):
    _, _, _, ctx.kernel_sizes, ctx.limits, ctx.backend, _ = inputs
    ctx.save_for_backward(output[1])


def _back_through_repaint(ctx, grad, _):
    return _back_through_blur(ctx, grad, *ctx.saved_tensors), *[None] * 6


def _keep_for_paint_fixed(ctx, inputs, output):
    _, colors, ctx.surrogate, ctx.softness, _, _ = inputs
    ctx.save_for_backward(*((output[1], colors) if ctx.surrogate == "soft" else ()))


def _back_through_paint_fixed(ctx, grad, _):
    if ctx.surrogate == "none":
        grad = torch.zeros_like(grad)
    elif ctx.surrogate == "soft":
        y, colors = ctx.saved_tensors
        palette = colors.expand(y.shape[0], -1, -1)
        grad = soft_step(grad, y, palette, colors.new_full((y.shape[0],), len(colors), dtype=torch.int32), ctx.softness)
    return grad, *[None] * 5


def _back_through_blur(ctx, grad, level):
    if list(ctx.kernel_sizes) == [1]:
        return grad
    return blur_transpose(grad, level, ctx.kernel_sizes, ctx.limits, ctx.backend)


discretize.register_autograd(_back_through_discretize, setup_context=_keep_for_discretize)
paint_fixed.register_autograd(_back_through_paint_fixed, setup_context=_keep_for_paint_fixed)
repaint.register_autograd(_back_through_repaint, setup_context=_keep_for_repaint)
