"""Fixed against adaptive codebooks on a user's pictures: error, colours used, and how far apart these colours are."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from linocut.data.images import read_image
from linocut.errors import InputError
from linocut.transform.fixed import densest, separations
from linocut.transform.histogram import ColorHistogram
from linocut.transform.modules import AdaptiveCodebook, FixedCodebook

SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512)
EPS_LEVELS = (2, 4, 8, 16, 32)
DEPTHS = (2, 3, 4, 6, 8)
MOST_REASONS = 5  # in one error
Transform = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One picture under one codebook. setting: k of a fixed one, eps in levels of an adaptive one, levels of a depth.

    separation: the smallest L-infinity distance of two colours that the picture uses, in levels; None for one colour.
    movable: the share of pixels that get another colour when all channels move by eps, each up or down, in one of
    the 2^C ways. The palette is held, so that adaptive ones are measured by the same rule.
    """

    picture: str
    kind: str
    setting: float
    num_colors: int
    rmse: float
    separation: float | None
    movable: float


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """Pictures that are read one at a time, each time; grey ones among coloured become coloured.

    left_out: for each file that cannot be read, why.
    """

    paths: tuple[Path, ...]
    channels: int
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, paths: Sequence[Path]) -> "Pictures":
        """The readable ones of these; every file is read once, so that nothing else fails in mid-work."""
        channels: dict[Path, int] = {}
        left_out = []
        for path in paths:
            try:
                channels[path] = len(read_image(path)[0])
            except InputError as reason:
                left_out.append(str(reason))
        if not channels:
            raise InputError(f"no picture can be read: {'; '.join(left_out[:MOST_REASONS])}")
        return cls(paths=tuple(channels), channels=max(channels.values()), left_out=tuple(left_out))

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        for path in self.paths:
            yield str(path), read_image(path)[0].expand(self.channels, -1, -1)


def own_codebook(pictures: Pictures, r: float) -> FixedCodebook:
    """The largest density codebook of these very pictures: the best case for a fixed one."""
    histogram = ColorHistogram(pictures.channels)
    for _, pixels in pictures:
        histogram.add(pixels[None])
    return FixedCodebook(colors=densest(*histogram.table(), max(SIZES), r).tolist())


def transforms(book: FixedCodebook, eps: float) -> Iterator[tuple[str, float, Transform]]:
    """(kind, setting, transform) of the sweep: a codebook taken greedily holds all smaller ones as its beginnings."""
    colors = book.settings()["colors"]
    for k in sorted({*(size for size in SIZES if size < len(colors)), len(colors)}):
        yield "fixed", k, FixedCodebook(colors=colors[:k])
    for levels in sorted({*EPS_LEVELS, 255 * eps}):
        yield "adaptive", levels, AdaptiveCodebook(eps=levels / 255)
    for depth in DEPTHS:
        yield "depth", depth, FixedCodebook.depth(depth)


def compare(pictures: Pictures, book: FixedCodebook, eps: float) -> Iterator[Measure]:
    """A measure for every picture and every transform of the sweep, picture by picture."""
    channels = book.codes.shape[1]
    if channels not in (1, pictures.channels):
        raise InputError(f"the codebook has colours of {channels} channels, these pictures are grey: fit one on them")
    sweep = list(transforms(book, eps))
    for path, pixels in pictures:
        for kind, setting, transform in sweep:
            yield measured(path, pixels, kind, setting, transform, eps)


def measured(path: str, pixels: torch.Tensor, kind: str, setting: float, transform: Transform, eps: float) -> Measure:
    """The measure of one picture under one transform."""
    natural = pixels[None].float() / 255
    held = transform.frozen(natural) if isinstance(transform, AdaptiveCodebook) else transform
    painted = transform(natural)
    error = 255 * float((painted - natural).double().square().mean().sqrt())
    eighths = painted[0].flatten(1).mul(2040).round().to(torch.int64)  # whole numbers again: float columns sort slowly
    packed = sum(channel << 12 * i for i, channel in enumerate(eighths))
    used = np.unique(packed.numpy())  # type: ignore[union-attr]
    colors = np.stack([(used >> 12 * i & 4095) / 8 for i in range(len(pixels))], axis=1)
    apart = float(separations(colors).min())
    return Measure(
        picture=path,
        kind=kind,
        setting=setting,
        num_colors=len(colors),
        rmse=error,
        separation=apart if math.isfinite(apart) else None,
        movable=float(_movable(natural, painted, held, eps).float().mean()),
    )


def _movable(natural: torch.Tensor, painted: torch.Tensor, held: Transform, eps: float) -> torch.Tensor:
    """(1,H,W): which pixels change colour at a corner of the box of radius eps around them."""
    moved = torch.zeros_like(natural[:, 0], dtype=torch.bool)
    for signs in itertools.product((-eps, eps), repeat=natural.shape[1]):
        shifted = (natural + torch.tensor(signs).view(-1, 1, 1)).clamp_(0, 1)
        moved |= (held(shifted) != painted).any(dim=1)
    return moved


@dataclass(frozen=True, kw_only=True)
class Mean:
    """One setting over all pictures; separation is the mean over those of two colours or more, None without any."""

    setting: float
    num_colors: float
    rmse: float
    separation: float | None
    movable: float


def curve(measures: Sequence[Measure], kind: str) -> list[Mean]:
    """The means of one kind of codebook, by setting."""
    rows = []
    for setting in sorted({m.setting for m in measures if m.kind == kind}):
        found = [m for m in measures if m.kind == kind and m.setting == setting]
        apart = [m.separation for m in found if m.separation is not None]
        rows.append(
            Mean(
                setting=setting,
                num_colors=float(np.mean([m.num_colors for m in found])),
                rmse=float(np.mean([m.rmse for m in found])),
                separation=float(np.mean(apart)) if apart else None,
                movable=float(np.mean([m.movable for m in found])),
            )
        )
    return rows
