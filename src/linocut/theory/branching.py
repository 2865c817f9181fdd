"""Proving predictions on every image an adversary can reach, by splitting what intervals alone cannot decide.

A box is one image, a range of windows and some pixels that are settled by assumption. If its interval bounds prove the
label, the box is done; otherwise it is split in two that cover it: first the range of windows, down to single ones
(all pixels share one split, so a single window leaves far fewer undecided), then the undecided pixel that matters most,
black in one half and white in the other (undecided pixels end as black or white, never in between). An image is proven
when no box is left, and given up when it has used its share of boxes.

Rounding: bounds are float32; a box counts as proven when its margin exceeds SLACK, which is more than ten times what
rounding was seen to move a margin (test_rounding_is_far_below_the_slack).
"""

from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor, nn

from linocut.errors import InputError
from linocut.theory.bounds import margin_bounds
from linocut.theory.certificate import Codebook, Span, binary_bounds, span_of

SLACK = 1e-3


class Proof(NamedTuple):
    """Per image: whether its label was proven for every perturbation, and how many boxes that took."""

    proven: Tensor
    boxes: Tensor


class Boxes(NamedTuple):
    """A stack of boxes: whose image, windows first_min..first_max, and the pixels assumed black or white."""

    owner: Tensor
    first_min: Tensor
    first_max: Tensor
    black: Tensor
    white: Tensor

    def select(self, index: Tensor | slice) -> "Boxes":
        """Some of the boxes."""
        return Boxes(*(part[index] for part in self))


def join(*boxes: Boxes) -> Boxes:
    """All boxes in one stack."""
    return Boxes(*(torch.cat(parts) for parts in zip(*boxes, strict=True)))


def prove(
    network: nn.Sequential,
    images: Tensor,
    labels: Tensor,
    eps: float | Fraction,
    codebook: Codebook,
    *,
    most_boxes: int = 2000,
    by_pixel: bool = True,
    at_once: int = 1024,
) -> Proof:
    """Which images (N, 1, H, W; whole levels) keep their label under every perturbation of eps levels.

    Without `by_pixel` only windows are split: intervals alone, but a window at a time.
    """
    if images.is_cuda and torch.backends.cudnn.allow_tf32:
        raise InputError("bounds need full float32: set torch.backends.cudnn.allow_tf32 = False before proving")
    choice = span_of(images, eps, codebook)
    failed = torch.zeros(len(images), dtype=torch.bool, device=images.device)
    spent = torch.zeros(len(images), dtype=torch.long, device=images.device)
    nothing = torch.zeros(images.shape, dtype=torch.bool, device=images.device)
    owner = torch.arange(len(images), device=images.device)
    queue = Boxes(owner, choice.first_min, choice.first_max, nothing, nothing)
    while len(queue.owner):
        taken, queue = queue.select(slice(-at_once, None)), queue.select(slice(None, -at_once))
        lower, upper = bits(images, choice, taken)
        with torch.no_grad():
            proven = margin_bounds(network, lower.float(), upper.float(), labels[taken.owner]) > SLACK
        spent.index_add_(0, taken.owner, torch.ones_like(taken.owner))
        single = taken.first_min == taken.first_max
        settled = (lower == upper).flatten(1).all(1)
        failed[taken.owner[~proven & single & (settled | (not by_pixel))]] = True
        failed |= spent >= most_boxes
        keep = ~proven & ~failed[taken.owner]
        of_windows = halve_windows(taken.select(keep & ~single))
        of_pixels = halve_pixels(network, images, labels, choice, taken.select(keep & single))
        queue = join(queue, of_windows, of_pixels)
        queue = queue.select(~failed[queue.owner])
    return Proof(~failed, spent)


def bits(images: Tensor, choice: Span, boxes: Boxes) -> tuple[Tensor, Tensor]:
    """The lowest and highest black-and-white image in each box."""
    last = torch.minimum(boxes.first_max + (choice.width - 1), choice.last_max[boxes.owner])
    lower, upper = binary_bounds(images[boxes.owner], boxes.first_min, last)
    return lower | boxes.white, upper & ~boxes.black


def halve_windows(boxes: Boxes) -> Boxes:
    """The same boxes, each as two with half of its windows."""
    middle = (boxes.first_min + boxes.first_max).div(2, rounding_mode="floor")
    return join(boxes._replace(first_max=middle), boxes._replace(first_min=middle + 1))


def halve_pixels(network: nn.Sequential, images: Tensor, labels: Tensor, choice: Span, boxes: Boxes) -> Boxes:
    """The same boxes, each as two: the undecided pixel whose colour moves the bound most is black, or white.

    How much a colour moves the bound is read off the bound's gradient; both halves must gain, so the smaller counts.
    """
    lower, upper = (b.float().requires_grad_() for b in bits(images, choice, boxes))
    if not len(boxes.owner):
        return boxes
    with torch.enable_grad():
        bound = margin_bounds(network, lower, upper, labels[boxes.owner]).sum()
        for_white, for_black = torch.autograd.grad(bound, (lower, upper))
    gain = torch.minimum(for_white, -for_black) + 0.1 * torch.maximum(for_white, -for_black)
    gain = gain.masked_fill(lower >= upper, -torch.inf).flatten(1)
    pixel = torch.zeros_like(gain, dtype=torch.bool).scatter(1, gain.argmax(1, keepdim=True), True).view_as(boxes.black)
    return join(boxes._replace(black=boxes.black | pixel), boxes._replace(white=boxes.white | pixel))
