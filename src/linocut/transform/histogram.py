"""Every colour of a data set, exactly counted, in the order in which the data shows them."""

import numpy as np
import torch

from linocut.errors import InputError

AT_ONCE = 1 << 22  # pixels: little enough that a mapped file is read as it is counted


class ColorHistogram:
    """Counts colours of uint8 images that are added batch by batch, in data set order.

    One counter for each of 256^C colours (C = 1 or 3), so the memory does not grow with the data.
    """

    def __init__(self, channels: int):
        if channels not in (1, 3):
            raise InputError(f"colours are counted in images of 1 or 3 channels, got {channels}")
        self.channels = channels
        self._counts = np.zeros(256**channels, dtype=np.int64)
        self._order = np.empty(256**channels, dtype=np.int32)
        self._distinct = 0

    def add(self, pixels: torch.Tensor) -> None:
        """Count the pixels of uint8 images (N,C,H,W)."""
        from linocut.transform.kernels.numba_histogram import count_colors

        if pixels.dtype != torch.uint8 or pixels.ndim != 4 or pixels.shape[1] != self.channels:
            raise InputError(
                f"wanted uint8 images (N,{self.channels},H,W), got {pixels.dtype} {tuple(pixels.shape)}: "
                "give the images as they were read, before any scaling"
            )
        step = max(1, AT_ONCE // max(1, pixels[0, 0].numel() if len(pixels) else 1))
        for i in range(0, len(pixels), step):
            part = pixels[i : i + step].cpu().contiguous().flatten(2).numpy()
            self._distinct = count_colors(part, self._counts, self._order, self._distinct)

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct colours (M,C) uint8 in order of first sight, rows from above, and their counts (M,)."""
        packed = self._order[: self._distinct]
        channels = [(packed >> 8 * c).astype(np.uint8) for c in reversed(range(self.channels))]
        return np.stack(channels, axis=1), self._counts[packed]
