"""Random crops and flips of a whole batch, on any device, each with its way back.

Letters: N examples stored, B in the batch, C channels, H W of the canvas, h w of the window.
"""

from dataclasses import dataclass

import torch

from linocut.errors import InputError

Size = tuple[int, int]  # height, width


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Where each image of a batch is cut: `rows` (B,h) and `columns` (B,w) of its canvas.

    A flip is nothing but columns that run backwards, so the same indices cut and write back.
    """

    rows: torch.Tensor
    columns: torch.Tensor

    @classmethod
    def at(cls, top: torch.Tensor, left: torch.Tensor, flip: torch.Tensor, size: Size) -> "Windows":
        """Windows of one size at the offsets `top`, `left` (B,), mirrored where `flip` (B,) is true."""
        height, width = size
        across = torch.arange(width, device=left.device)
        across = torch.where(flip[:, None], across.flip(0), across)
        down = torch.arange(height, device=top.device)
        return cls(rows=top[:, None] + down, columns=left[:, None] + across)

    @classmethod
    def draw(cls, batch: int, canvas: Size, size: Size, *, flip: bool, generator: torch.Generator) -> "Windows":
        """Windows on the generator's device, at offsets drawn evenly from all that fit.

        With `flip`, each is mirrored with probability 1/2.
        """
        if size[0] > canvas[0] or size[1] > canvas[1]:
            raise InputError(f"a window of {size} does not fit on a canvas of {canvas}")
        device = generator.device

        def draw(choices: int) -> torch.Tensor:
            return torch.randint(choices, (batch,), generator=generator, device=device)

        top, left = draw(canvas[0] - size[0] + 1), draw(canvas[1] - size[1] + 1)
        mirrored = draw(2).bool() if flip else torch.zeros(batch, dtype=torch.bool, device=device)
        return cls.at(top, left, mirrored, size)

    def to(self, device: torch.device | str) -> "Windows":
        return Windows(rows=self.rows.to(device), columns=self.columns.to(device))

    def cut(self, canvases: torch.Tensor, examples: torch.Tensor) -> torch.Tensor:
        """The windows (B,C,h,w) of the canvases (N,C,H,W) of these examples (B,)."""
        return canvases[self._places(canvases, examples)]

    def write_back(self, canvases: torch.Tensor, examples: torch.Tensor, images: torch.Tensor) -> None:
        """Put images (B,C,h,w) where `cut` took them from, un-flipped; changes `canvases` in place.

        The examples of a batch must differ from one another: two of one canvas would overwrite each other.
        """
        canvases[self._places(canvases, examples)] = images

    def _places(self, canvases: torch.Tensor, examples: torch.Tensor) -> tuple[torch.Tensor, ...]:
        channels = torch.arange(canvases.shape[1], device=canvases.device)
        return (
            examples[:, None, None, None],
            channels[:, None, None],
            self.rows[:, None, :, None],
            self.columns[:, None, None, :],
        )
