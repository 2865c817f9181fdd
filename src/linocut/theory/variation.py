"""The same digits in other colours or a little to the side: random contrast and brightness, random shifts."""

import torch
from torch import Tensor
from torch.nn import functional as F

from linocut.theory.definitions import WHITE


def vary_contrast(images: Tensor, w: int, generator: torch.Generator) -> Tensor:
    """The images with black at c1 and white at c2, a random pair at least w apart for each; uint8 in, uint8 out.

    All pairs are equally likely: sorting two draws of 0..256-w without replacement and pulling the larger w-1 apart.
    """
    n, top = len(images), WHITE - w + 2
    one = torch.randint(top, (n,), generator=generator, device=generator.device)
    other = torch.randint(top - 1, (n,), generator=generator, device=generator.device)
    other = other + (other >= one)
    c1, c2 = torch.minimum(one, other), torch.maximum(one, other) + w - 1
    c1, c2 = (c.to(images.device).view(-1, *[1] * (images.dim() - 1)) for c in (c1, c2))
    return (c1 + (2 * (c2 - c1) * images.long() + WHITE) // (2 * WHITE)).to(torch.uint8)


def shifted(images: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """Every (1, H, W) image moved by its own random -most..most pixels each way; black comes in from outside."""
    n, channels, height, width = images.shape
    padded = F.pad(images, (most, most, most, most))
    moves = torch.randint(2 * most + 1, (2, n, 1), generator=generator, device=generator.device).to(images.device)
    rows, columns = (
        move + torch.arange(side, device=images.device) for move, side in zip(moves, (height, width), strict=True)
    )
    tall = padded.gather(2, rows[:, None, :, None].expand(-1, channels, -1, padded.shape[3]))
    return tall.gather(3, columns[:, None, None, :].expand(-1, channels, height, -1))
