"""The slope of the soft codebook, in tensor operations."""

import math

import torch

from linocut.transform.kernels.torch_nearest import strips
from linocut.transform.settings import EIGHTHS_PER_LEVEL, FULL_SCALE


def through_soft_codebook(
    grad: torch.Tensor, y: torch.Tensor, palette: torch.Tensor, num_colors: torch.Tensor, softness: float
) -> torch.Tensor:
    """(B,C,H,W): the gradient at the blurred pixels y, had each become the weighted mean of the palette.

    Weights are the softmax of -softness times the L-infinity distance in levels (Paper: Alternative adaptive
    attacks, after Chen et al.). Where several channels hold the largest difference they share its slope.
    """
    grads, pixels = grad.flatten(2), y.flatten(2)
    back = torch.empty_like(grads)
    # A graph that is being captured cannot wait for a number; elsewhere the wait is far shorter than the padding.
    K = palette.shape[1] if _captured(y) or not len(y) else int(num_colors.max())
    colors = palette[:, :K].to(torch.float32)
    missing = torch.arange(K, device=y.device) >= num_colors[:, None]
    for b, n in strips(len(y), pixels.shape[2], K * y.shape[1], y.device):
        back[b, :, n] = _soft_strip(grads[b, :, n], pixels[b, :, n], colors[b], missing[b], softness)
    return back.view(grad.shape)


def _captured(y: torch.Tensor) -> bool:
    return y.is_cuda and torch.cuda.is_current_stream_capturing()


def _soft_strip(
    grad: torch.Tensor, pixels: torch.Tensor, colors: torch.Tensor, missing: torch.Tensor, softness: float
) -> torch.Tensor:
    """(b,C,n) from gradients and eighths (b,C,n), colours in eighths (b,K,C), and which are missing (b,K)."""
    gap = pixels.to(torch.float32)[:, None] - colors[:, :, :, None]  # (b,K,C,n)
    size = gap.abs()
    largest = size.amax(2)
    score = (-softness / EIGHTHS_PER_LEVEL) * largest
    weight = score.masked_fill_(missing[:, :, None], -math.inf).softmax(1)  # (b,K,n)
    # d mean / d pixel = sum_k weight_k (color_k - mean) slope_k, with slope_k that of the score; so:
    pull = (grad[:, None] * (colors / FULL_SCALE)[:, :, :, None]).sum(2)  # (b,K,n)
    pull = weight * (pull - (weight * pull).sum(1, keepdim=True))
    holds = size == largest[:, :, None]
    slope = gap.sign_() * holds / holds.sum(2, keepdim=True)
    return -softness * (FULL_SCALE / EIGHTHS_PER_LEVEL) * (pull[:, :, None] * slope).sum(1)
