"""The fixed codebook as an nn.Module: images (B,C,H,W) float32 in [0,1] in, the same out."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from linocut.errors import InputError
from linocut.transform import codebook_file, ops
from linocut.transform import explain as explaining
from linocut.transform.fixed import MOST_COLORS, grey_levels, in_eighths
from linocut.transform.fixed_fit import fit_codebook
from linocut.transform.medoids import SAMPLE
from linocut.transform.shell import TransformModule, looks_at_values
from linocut.transform.validate import check_form, check_values


class FixedCodebook(TransformModule):
    """Images whose every pixel is its nearest code in L-infinity, the same codes for all images (Chen et al. 2019).

    colors: whole levels (K,C), ties go to the earlier one. Codes of one channel paint each channel of a colour image
    by itself. origin: what is known of how the codes were made, with the SHA-256 of the data.
    surrogate: soft (theirs: the Jacobian of the softmax-weighted codes), identity (bpda is the same), or none.
    """

    codes: Tensor

    def __init__(
        self,
        *,
        colors: Sequence[Sequence[int]],
        origin: Mapping[str, Any] | None = None,
        surrogate: str = "soft",
        softness: float = 0.1,
        backend: str = "auto",
        validate: bool | None = None,
    ):
        levels = _checked(colors)
        super().__init__(
            {
                "colors": levels.tolist(),
                "origin": None if origin is None else dict(origin),
                "surrogate": surrogate,
                "softness": softness,
                "backend": backend,
                "validate": validate,
            }
        )
        self.register_buffer("codes", torch.from_numpy(in_eighths(levels)), persistent=False)

    @classmethod
    def fit(
        cls, images: Any, k: int, r: float = 16, *, builder: str = "density", sample: int = SAMPLE, seed: int = 0
    ) -> Self:
        """The codebook of training images: `linocut.data.Images`, or a uint8 tensor (N,C,H,W). Test images are refused.

        builder "density": the most frequent colour, then none within L-infinity r (levels) of it, at most k times.
        builder "medoids": k-medoids in L1 on `sample` pixels drawn with `seed`; r plays no part.
        """
        colors, origin = fit_codebook(images, k, r, builder=builder, sample=sample, seed=seed)
        return cls(colors=colors.tolist(), origin=origin)

    @classmethod
    def depth(cls, levels: int) -> Self:
        """Colour-depth reduction, the plain ancestor: so many evenly spaced levels for each channel, no data."""
        return cls(colors=grey_levels(levels).tolist(), origin={"builder": "depth", "k": levels})

    def save(self, path: str | Path) -> None:
        """Write colours and origin as JSON, with a hash, whole or not at all."""
        codebook_file.write(Path(path), {"colors": self._settings["colors"], "origin": self._settings["origin"]})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The codebook saved at `path`; a changed or foreign file is refused."""
        return cls(**codebook_file.read(Path(path)))

    def forward(self, x: Tensor) -> Tensor:
        """The painted images, (B,C,H,W) like x."""
        self._check(x)
        planes = x if x.shape[1] == self.codes.shape[1] else x.reshape(-1, 1, *x.shape[2:])
        check = looks_at_values(self._validate, x)
        codes = self.codes.to(x.device)
        return ops.paint_fixed(planes, codes, self._surrogate, self._softness, self._backend, check)[0].view(x.shape)

    def explain(self, x: Tensor) -> list[explaining.Explanation]:
        """What became of each image of x (B,C,H,W)."""
        self._check(x)
        check_values(x)
        return explaining.explain_fixed(x, self.codes.to(x.device), self._backend)

    def with_surrogate(self, surrogate: str) -> Self:
        """The same transform with another backward rule, on the same device."""
        return super().with_surrogate(surrogate).to(self.codes.device)

    def extra_repr(self) -> str:
        digest = hashlib.sha256(repr(self._settings["colors"]).encode()).hexdigest()[:12]
        rest = {key: value for key, value in self._settings.items() if key not in ("colors", "origin")}
        shown = ", ".join(f"{key}={value!r}" for key, value in rest.items())
        return f"{len(self.codes)} colors {digest}, {shown}"

    def _check(self, x: Tensor) -> None:
        check_form(x)
        channels = self.codes.shape[1]
        if channels != 1 and channels != x.shape[1]:  # not `in`: torch.compile knows x.shape[1] by a symbol only
            raise InputError("got grey images for a codebook of colours: fit one on grey images, or repeat the channel")


def _checked(colors: Sequence[Sequence[int]]) -> np.ndarray:
    """The colours as uint8 (K,C), if that is what they are."""
    wanted = f"colors must be 1 to {MOST_COLORS} different rows of 1 or 3 whole levels, 0..255"
    try:
        levels = np.array(colors)
    except ValueError as error:
        raise InputError(f"{wanted}; got rows of different lengths") from error
    if levels.ndim != 2 or levels.shape[1] not in (1, 3) or not 1 <= len(levels) <= MOST_COLORS:
        raise InputError(f"{wanted}; got shape {levels.shape}")
    if levels.dtype.kind not in "iu":
        raise InputError(f"{wanted}; got {levels.dtype}, the first {levels[0].tolist()}")
    if levels.min() < 0 or levels.max() > 255:
        raise InputError(f"{wanted}; got {levels.min()} to {levels.max()}")
    if len(np.unique(levels, axis=0)) < len(levels):
        raise InputError(f"{wanted}; got some colour twice")
    return levels.astype(np.uint8)
