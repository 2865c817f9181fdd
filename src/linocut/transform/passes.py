"""Forward and backward of the transform in terms of a backend's kernels. ops.py makes operators of them.

Rules travel as tuples of integers, which is what an operator of PyTorch can take.
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple, fields
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from linocut.errors import InputError
from linocut.transform.kernels import torch_ops
from linocut.transform.kernels.dispatch import backend as kernels
from linocut.transform.kernels.torch_ops import leave
from linocut.transform.settings import NO_BLUR, BlurRule, PaletteRule
from linocut.transform.validate import check_values


def blur_numbers(rule: BlurRule) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The rule's kernel sizes and limits, as the operators take them."""
    return rule.kernel_sizes, rule.limits


def palette_numbers(rule: PaletteRule | None) -> tuple[int, ...]:
    """The rule's fields in order, as the operators take them; none for a transform without a codebook."""
    return () if rule is None else tuple(int(value) for value in astuple(rule))


@lru_cache(maxsize=256)
def _blur_rule_of(kernel_sizes: tuple[int, ...], limits: tuple[int, ...]) -> BlurRule:
    return BlurRule(kernel_sizes=kernel_sizes, limits=limits)


@lru_cache(maxsize=256)
def _palette_rule_of(numbers: tuple[int, ...]) -> PaletteRule:
    values: dict[str, Any] = {field.name: n for field, n in zip(fields(PaletteRule), numbers, strict=True)}
    return PaletteRule(**values)


def blur_rule(kernel_sizes: Sequence[int], limits: Sequence[int]) -> BlurRule:
    """The rule that blur_numbers took apart."""
    return _blur_rule_of(tuple(kernel_sizes), tuple(limits))


def palette_rule(numbers: Sequence[int]) -> PaletteRule:
    """The rule that palette_numbers took apart."""
    return _palette_rule_of(tuple(numbers))


def laid_out(x: Tensor) -> Tensor:
    """x with its own numbers in memory, row after row; a view may leave it to the reader to negate them."""
    return x.resolve_neg().contiguous()


def discretize(
    x: Tensor,
    kernel_sizes: Sequence[int],
    limits: Sequence[int],
    palette: Sequence[int],
    surrogate: str,
    softness: float,
    backend: str,
    check: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """T(x), and what its backward needs: blurred eighths, kernel choice, palette, number of colours."""
    if check:
        check_values(x)
    run = kernels(backend, x.device)
    y, level = run.blur(laid_out(x), blur_rule(kernel_sizes, limits))
    if not palette:
        nothing = torch.empty((len(x), 0, x.shape[1]), dtype=torch.int16, device=x.device)
        return leave(y), y, level, nothing, torch.zeros(len(x), dtype=torch.int32, device=x.device)
    colors, _, num_colors = run.find_palette(y, palette_rule(palette))
    return run.paint(y, colors, num_colors), y, level, colors, num_colors


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
    y, level = run.blur(laid_out(x), blur_rule(kernel_sizes, limits))
    return run.paint(y, palette, num_colors), level


def paint_fixed(
    x: Tensor, colors: Tensor, surrogate: str, softness: float, backend: str, check: bool
) -> tuple[Tensor, Tensor]:
    """x painted with one list of codes (K,C) in eighths, and x in eighths, which the soft backward needs."""
    if check:
        check_values(x)
    run = kernels(backend, x.device)
    y, _ = run.blur(laid_out(x), NO_BLUR)
    return run.paint_linf(y, colors), y


def blur_transpose(
    grad: Tensor, level: Tensor, kernel_sizes: Sequence[int], limits: Sequence[int], backend: str
) -> Tensor:
    """The gradient at the blur's input, its kernel choice frozen."""
    return kernels(backend, grad.device).blur_transpose(laid_out(grad), level, blur_rule(kernel_sizes, limits))


def blur_along(
    direction: Tensor, level: Tensor, kernel_sizes: Sequence[int], limits: Sequence[int], backend: str
) -> Tensor:
    """The gradient of blur_transpose, which is linear: the blur of a direction by the same kernels.

    Only a second derivative asks for it, so every backend takes the plain one.
    """
    return torch_ops.blur_along(laid_out(direction), level, blur_rule(kernel_sizes, limits))


def soft_step(grad: Tensor, y: Tensor, palette: Tensor, num_colors: Tensor, softness: float, backend: str) -> Tensor:
    """The gradient at the blurred pixels, had the codebook been soft."""
    run = kernels(backend, grad.device)
    return run.through_soft_codebook(laid_out(grad), y, palette, num_colors, softness)


def keep_for_discretize(ctx, inputs, output):
    """What the backward of `discretize` will need."""
    _, ctx.kernel_sizes, ctx.limits, palette, ctx.surrogate, ctx.softness, ctx.backend, _ = inputs
    if ctx.surrogate == "soft" and not palette:
        ctx.surrogate = "bpda"  # a blur alone has no codebook to soften
    _, y, level, colors, num_colors = output
    needed = {"bpda": (level,), "soft": (level, y, colors, num_colors)}
    ctx.save_for_backward(*needed.get(ctx.surrogate, ()))


def keep_for_repaint(ctx, inputs, output):
    """What the backward of `repaint` will need."""
    _, _, _, ctx.kernel_sizes, ctx.limits, ctx.backend, _ = inputs
    ctx.save_for_backward(output[1])


def keep_for_paint_fixed(ctx, inputs, output):
    """What the backward of `paint_fixed` will need."""
    _, colors, ctx.surrogate, ctx.softness, ctx.backend, _ = inputs
    ctx.save_for_backward(*((output[1], colors) if ctx.surrogate == "soft" else ()))


def keep_for_step(ctx, inputs, output):
    """What the backward of `blur_transpose` and of `blur_along` will need."""
    _, level, *ctx.settings = inputs
    ctx.save_for_backward(level)


def refuse_soft_again(ctx, grad):
    """No second derivative of the soft codebook: it would change with the pixels too."""
    raise InputError("the surrogate 'soft' was differentiated twice, which it cannot be: use 'bpda' or 'identity'")


class Backward:
    """The backward rules, in terms of three steps that are either plain functions or operators."""

    def __init__(
        self,
        blur_transpose: Callable[..., Tensor],
        blur_along: Callable[..., Tensor],
        soft_step: Callable[..., Tensor],
    ):
        self.blur_transpose, self.blur_along, self.soft_step = blur_transpose, blur_along, soft_step

    def discretize(self, ctx, grad, *_):
        """The gradient at x, and None for each setting."""
        if ctx.surrogate == "none":
            grad = torch.zeros_like(grad)
        elif ctx.surrogate != "identity":
            level, *codebook = ctx.saved_tensors
            if ctx.surrogate == "soft":
                grad = self.soft_step(grad, *codebook, ctx.softness, ctx.backend)
            grad = self._through_blur(ctx, grad, level)
        return grad, *[None] * 7

    def repaint(self, ctx, grad, *_):
        """The gradient at x, and None for each setting."""
        return self._through_blur(ctx, grad, *ctx.saved_tensors), *[None] * 6

    def paint_fixed(self, ctx, grad, *_):
        """The gradient at x, and None for each setting."""
        if ctx.surrogate == "none":
            grad = torch.zeros_like(grad)
        elif ctx.surrogate == "soft":
            y, colors = ctx.saved_tensors
            palette, count = colors.expand(y.shape[0], -1, -1), colors.new_full((y.shape[0],), len(colors))
            grad = self.soft_step(grad, y, palette, count.to(torch.int32), ctx.softness, ctx.backend)
        return grad, *[None] * 5

    def of_blur_transpose(self, ctx, grad):
        """The gradient at what it was given, and None for the kernel choice and each setting."""
        return self.blur_along(grad, *ctx.saved_tensors, *ctx.settings), *[None] * 4

    def of_blur_along(self, ctx, grad):
        """The same of the other, and so on."""
        return self.blur_transpose(grad, *ctx.saved_tensors, *ctx.settings), *[None] * 4

    def _through_blur(self, ctx, grad, level):
        if tuple(ctx.kernel_sizes) == (1,):
            return grad
        return self.blur_transpose(grad, level, ctx.kernel_sizes, ctx.limits, ctx.backend)
