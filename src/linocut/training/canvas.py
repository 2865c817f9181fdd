"""ATTA's memory: for each training example, its natural image and the perturbation found so far.

The natural image is kept as the uint8 it came as; what the pad adds around it is the border's grey, which is
no pixel and is therefore filled in when a window is cut. The perturbation covers the whole padded canvas.
Paper: section 5 after Zheng et al. (2020).
"""

import os
from pathlib import Path

import torch

from linocut.data.augment import Size, Windows
from linocut.errors import InputError

BORDER = 0.5
MEMORY = Path("/proc/meminfo")
DTYPES = {"float32": torch.float32, "half": torch.float16, "int8": torch.int8}


class Canvas:
    """Perturbations of `pixels` (N,C,H,W), stored in one of three precisions and rounded to nearest.

    "float32" keeps them as they are. "half" errs by at most 2^-16 below 1/16 (0.004 of a grey level)
    and 2^-13 below 1/2. "int8" counts in steps of eps/127 and errs by at most eps/254 (0.03 of a level
    at 8/255); there a start noise of 0.001 would vanish for eps above 0.25, so it is refused.
    A restored image may therefore leave the unit range by that error; the next attack step clips it.
    """

    def __init__(
        self,
        pixels: torch.Tensor,
        *,
        pad: int,
        eps: float,
        store: str | None,
        device: torch.device,
        file: Path | None = None,
    ):
        if store == "int8" and not 0 < eps <= 0.25:
            raise InputError(f"canvas_store int8 needs 0 < eps <= 0.25, got {eps!r}: use half")
        self.device = device
        self.pad = pad
        self.unit = eps / 127 if store == "int8" else 1.0
        n, channels, height, width = pixels.shape
        self.image: Size = (height, width)
        # Natural training (store None) perturbs nothing and keeps nothing.
        shape = (0 if store is None else n, channels, height + 2 * pad, width + 2 * pad)
        dtype = torch.int8 if store is None else DTYPES[store]
        if file is None:
            self.pixels = pixels.to(device)
            self.change = torch.zeros(shape, dtype=dtype, device=device)
        else:
            self.pixels = pixels.cpu()
            self.change = torch.zeros(shape, dtype=dtype) if store is None else _mapped(file, shape, dtype)

    @property
    def home(self) -> torch.device:
        """Where the store lies: the training device, or the CPU when it is a file."""
        return self.change.device

    def reset(self, places: torch.Tensor, noise: float, generator: torch.Generator) -> None:
        """Start the perturbations of these examples anew: noise * N(0,1), drawn 1024 examples at a time."""
        for block in places.to(self.home).split(1024):
            drawn = torch.randn(len(block), *self.change.shape[1:], generator=generator, device=generator.device).mul_(
                noise
            )
            self.change[block] = self._stored(drawn).to(self.home)

    def cut(self, examples: torch.Tensor, windows: Windows) -> tuple[torch.Tensor, torch.Tensor]:
        """The natural windows (B,C,h,w) of these examples, and the perturbed ones to start from."""
        examples, windows = examples.to(self.home), windows.to(self.home)
        natural = self.cut_natural(examples, windows)
        change = windows.cut(self.change, examples).to(self.device).float()
        return natural, torch.add(natural, change, alpha=self.unit)

    def cut_natural(self, examples: torch.Tensor, windows: Windows) -> torch.Tensor:
        """The natural windows alone; what lies outside the image is the border's grey."""
        examples, windows = examples.to(self.home), windows.to(self.home)
        rows, columns = windows.rows - self.pad, windows.columns - self.pad
        height, width = self.image
        inside = ((rows >= 0) & (rows < height))[:, None, :, None] & ((columns >= 0) & (columns < width))[:, None, None]
        within = Windows(rows=rows.clamp(0, height - 1), columns=columns.clamp(0, width - 1))
        pixels = within.cut(self.pixels, examples).to(self.device)
        return torch.where(inside.to(self.device), pixels.float() / 255, BORDER)

    def write_back(
        self, examples: torch.Tensor, windows: Windows, natural: torch.Tensor, perturbed: torch.Tensor
    ) -> None:
        """Store what the attack found in the windows it started from, un-flipped."""
        examples, windows = examples.to(self.home), windows.to(self.home)
        windows.write_back(self.change, examples, self._stored(perturbed - natural).to(self.home))

    def _stored(self, change: torch.Tensor) -> torch.Tensor:
        if self.change.dtype is torch.int8:
            return (change / self.unit).round_().clamp_(-127, 127).to(torch.int8)
        return change.to(self.change.dtype)


def fits_in_memory(pixels: torch.Tensor, pad: int, store: str | None, device: torch.device) -> bool:
    """Whether pixels and perturbations take at most half of the memory that is free on the device."""
    n, channels, height, width = pixels.shape
    each = 0 if store is None else DTYPES[store].itemsize
    needed = pixels.numel() + n * channels * (height + 2 * pad) * (width + 2 * pad) * each
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else _free_memory()
    return free is None or needed <= free / 2


def _free_memory() -> int | None:
    """Bytes that a program can still have, files' caches that would make room included; None where nobody says."""
    try:
        lines = MEMORY.read_text(encoding="ascii").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, LookupError, StopIteration):
        pass  # no Linux, or a very old one
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _mapped(file: Path, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    size = torch.Size(shape).numel()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "wb") as stream:
            # Reserve the blocks now: a sparse file would meet a full disk as a bus error in mid-training.
            os.posix_fallocate(stream.fileno(), 0, max(1, size * dtype.itemsize))
    except OSError as error:
        raise InputError(f"cannot keep the canvases in {file}: {error.strerror}") from error
    return torch.from_file(str(file), shared=True, size=size, dtype=dtype).view(shape)
