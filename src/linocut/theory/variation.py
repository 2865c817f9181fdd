"""Images with random contrast and brightness: the same digits, every image in a range of levels of its own."""

import torch
from torch import Tensor

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
