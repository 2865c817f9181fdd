"""Structural similarity (Wang et al. 2004): how alike two images look, 1 for equal ones."""

import torch
import torch.nn.functional as F

WINDOW, SIGMA = 11, 1.5
_C1, _C2 = 0.01**2, 0.03**2  # for values in [0, 1]


def ssim(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """The SSIM of each pair of images, (B,), for (B,C,H,W) in [0, 1]; mean over channels and window positions.

    A Gaussian window of 11 pixels and sigma 1.5, only where it fits whole; on a shorter side the largest odd
    window that fits. Paper: section Perceptibility.
    """
    channels, height, width = first.shape[1:]
    down, across = _window(height), _window(width)

    def smooth(images: torch.Tensor) -> torch.Tensor:
        images = F.conv2d(images, down.view(1, 1, -1, 1).expand(channels, 1, -1, 1), groups=channels)
        return F.conv2d(images, across.view(1, 1, 1, -1).expand(channels, 1, 1, -1), groups=channels)

    first, second = first.double(), second.double()
    mean, other = smooth(first), smooth(second)
    variance = smooth(first * first) - mean * mean
    other_variance = smooth(second * second) - other * other
    covariance = smooth(first * second) - mean * other
    likeness = (2 * mean * other + _C1) * (2 * covariance + _C2)
    likeness /= (mean * mean + other * other + _C1) * (variance + other_variance + _C2)
    return likeness.flatten(1).mean(dim=1)


def _window(side: int) -> torch.Tensor:
    size = min(WINDOW, side if side % 2 else max(1, side - 1))
    places = torch.arange(size, dtype=torch.float64) - size // 2
    weights = torch.exp(-(places**2) / (2 * SIGMA**2))
    return weights / weights.sum()
