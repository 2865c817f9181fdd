"""The nearest colour of every pixel, exactly, as one matrix product and one minimum.

Squared distance and index travel in one float64: key = 2^20 (|c|² - 2 p·c) + index. The least key is the
nearest colour, ties at the lowest index. All of it are integers below 2^53, so no order of summation,
no TF32 and no autocast (they concern float32) can change a bit.
"""

from collections.abc import Iterator

import torch

INDEX_BITS = 20
NEVER = 2.0**60  # the key of a row that holds no colour


def strip_elements(device: torch.device) -> int:
    """How many numbers one strip of work may hold: what stays in a core's cache, or what fills a GPU."""
    return 2**19 if device.type == "cpu" else 2**25


def strips(images: int, pixels: int, width: int, device: torch.device) -> Iterator[tuple[slice, slice]]:
    """Slices of images and of their pixels such that `width` numbers a pixel fit: small images are taken whole."""
    room = max(1, strip_elements(device) // max(1, width))
    many = max(1, room // max(1, pixels))
    for i in range(0, images, many):
        for j in range(0, pixels, room):
            yield slice(i, min(i + many, images)), slice(j, min(j + room, pixels))


class ColorTable:
    """Colours (B,K,C) in eighths, ready for the search; rows from `num_colors` (B,) on are never found."""

    def __init__(self, colors: torch.Tensor, num_colors: torch.Tensor):
        c = colors.to(torch.float64)
        index = torch.arange(c.shape[1], dtype=torch.float64, device=c.device)
        scale = float(2**INDEX_BITS)
        offset = scale * c.square().sum(2) + index
        offset = offset.masked_fill(index >= num_colors[:, None], NEVER)
        self.rows = torch.cat([-2 * scale * c, offset[:, :, None]], dim=2)
        # To read the numbers would make CUDA wait; there every row is compared.
        on_cpu = colors.device.type == "cpu"
        self.widths = num_colors.tolist() if on_cpu else [c.shape[1]] * len(c)

    def nearest(self, pixels: torch.Tensor) -> Iterator[tuple[slice, slice, torch.Tensor]]:
        """For each strip of `pixels` (B,C,N): its images, its pixels, and (b,n) the index of each colour."""
        widest = max(self.widths, default=1)
        for b, n in strips(len(pixels), pixels.shape[2], widest, pixels.device):
            yield b, n, _least(self.rows[b, : max(self.widths[b])], pixels[b, :, n])


def _least(rows: torch.Tensor, pixels: torch.Tensor) -> torch.Tensor:
    """(b,n): the index in the least key of each column of rows (b,K,C+1) x pixels (b,C,n)."""
    one = torch.ones((), dtype=torch.float64, device=pixels.device).expand(len(pixels), 1, pixels.shape[2])
    keys = torch.bmm(rows, torch.cat([pixels.to(torch.float64), one], dim=1))
    return keys.amin(dim=1).to(torch.int64).bitwise_and_(2**INDEX_BITS - 1)
