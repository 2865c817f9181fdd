"""Backend `reference`: reference.py over a batch, one image after the other."""

import numpy as np
import torch

from linocut.transform import fixed, reference
from linocut.transform.settings import EIGHTHS_PER_LEVEL, BlurRule, PaletteRule


def blur(x: torch.Tensor, rule: BlurRule) -> tuple[torch.Tensor, torch.Tensor]:
    """Eighths int16 and kernel choice uint8, both (B,C,H,W)."""
    y = np.empty(x.shape, dtype=np.int16)
    level = np.empty(x.shape, dtype=np.uint8)
    for i, image in enumerate(_array(x)):
        y[i], level[i] = reference.adaptive_blur(reference.enter(image), rule)
    return _tensor(y, x), _tensor(level, x)


def blur_transpose(grad: torch.Tensor, level: torch.Tensor, rule: BlurRule) -> torch.Tensor:
    """The gradient at the blur's input, (B,C,H,W) float32, summed in float64."""
    back = np.zeros(grad.shape)
    grads, levels = _array(grad).astype(np.float64), _array(level)
    for i, size in enumerate(rule.kernel_sizes):
        weights, s = reference.gaussian_weights(size)
        share = np.where(levels == i, grads, 0.0)
        for axis in (2, 3):
            share = _scatter(share, np.array(weights) / 2.0**s, axis)
        back += share
    return _tensor(back.astype(np.float32), grad)


def _scatter(values: np.ndarray, weights: np.ndarray, axis: int) -> np.ndarray:
    """Every value handed back to the positions it was gathered from, along one axis."""
    values = np.moveaxis(values, axis, 0)
    back = np.zeros(values.shape)
    source = reference.reflect(len(values), len(weights) // 2)
    for i, weight in enumerate(weights):
        np.add.at(back, source[i : i + len(values)], weight * values)
    return np.moveaxis(back, 0, axis)


def find_palette(y: torch.Tensor, rule: PaletteRule) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Colours int16 (B,K,C), populations int32 (B,K) and how many rows are used, int32 (B,)."""
    B, C, H, W = y.shape
    K = rule.most_colors(C, H, W)
    colors = np.zeros((B, K, C), dtype=np.int16)
    population = np.zeros((B, K), dtype=np.int32)
    num_colors = np.zeros(B, dtype=np.int32)
    for i, image in enumerate(_array(y)):
        palette = reference.find_palette(image.astype(np.int64), rule)
        n = num_colors[i] = len(palette.colors)
        colors[i, :n], population[i, :n] = palette.colors, palette.population
    return _tensor(colors, y), _tensor(population, y), _tensor(num_colors, y)


def paint(y: torch.Tensor, palette: torch.Tensor, num_colors: torch.Tensor) -> torch.Tensor:
    """Unit floats (B,C,H,W): every pixel its nearest colour, ties to the earlier one."""
    out = np.empty(y.shape, dtype=np.float32)
    colors, sizes = _array(palette).astype(np.int64), _array(num_colors)
    for i, image in enumerate(_array(y)):
        painted, _ = reference.paint(image.astype(np.int64), colors[i, : sizes[i]])
        out[i] = reference.leave(painted)
    return _tensor(out, y)


def paint_linf(y: torch.Tensor, colors: torch.Tensor) -> torch.Tensor:
    """Unit floats (B,C,H,W): every pixel its nearest code in L-infinity, ties to the earlier one."""
    out = np.empty(y.shape, dtype=np.float32)
    for i, image in enumerate(_array(y)):
        out[i] = reference.leave(fixed.paint(image, _array(colors)))
    return _tensor(out, y)


def through_soft_codebook(
    grad: torch.Tensor, y: torch.Tensor, palette: torch.Tensor, num_colors: torch.Tensor, softness: float
) -> torch.Tensor:
    """The gradient at the eighths y, (B,C,H,W) float32, computed in float64."""
    back = np.empty(grad.shape, dtype=np.float32)
    for i, n in enumerate(_array(num_colors)):
        pixels, slopes = (
            _array(part[i]).reshape(part.shape[1], -1).T.astype(np.float64) for part in (y, grad)
        )  # (N,C)
        colors = _array(palette[i, :n]).astype(np.float64)
        gap = (pixels[:, None] - colors) / EIGHTHS_PER_LEVEL  # (N,K,C), in levels
        largest = np.abs(gap).max(axis=2, keepdims=True)
        holds = np.abs(gap) == largest
        weight = np.exp(-softness * (largest - largest.min(axis=1, keepdims=True)))
        weight /= weight.sum(axis=1, keepdims=True)
        # mean = sum of weight * color, and d weight / d pixel = weight * (slope - sum of weight * slope):
        slope = -softness * np.sign(gap) * holds / holds.sum(axis=2, keepdims=True)
        slope = weight * (slope - (weight * slope).sum(axis=1, keepdims=True))
        pull = slopes @ colors.T / EIGHTHS_PER_LEVEL  # (N,K): what a little more of each colour is worth
        back[i] = (pull[:, :, None] * slope).sum(axis=1).T.reshape(grad.shape[1:])
    return _tensor(back, grad)


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()


def _tensor(array: np.ndarray, like: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(array).to(like.device)
