"""The transform as nn.Modules: images (B,C,H,W) float32 in [0,1] in, the same out. No parameters, no state.

    EssentialFeatures = AdaptiveCodebook after AdaptiveBlur
    FixedCodebook = one list of colours for all images, the adaptive codebook's rival (fixed_module.py)

Each computes the true transform forward; backward follows its surrogate (see surrogate.py).
"""

import inspect
from collections.abc import Sequence
from typing import Any, Self

from torch import Tensor, nn

from linocut.errors import InputError
from linocut.transform import explain as explaining
from linocut.transform import ops
from linocut.transform.fixed_module import FixedCodebook
from linocut.transform.kernels.dispatch import backend as kernels
from linocut.transform.passes import laid_out
from linocut.transform.presets import preset_settings
from linocut.transform.settings import NO_BLUR, BlurRule, PaletteRule, as_list
from linocut.transform.shell import TransformModule, looks_at_values
from linocut.transform.validate import check_form, check_values

__all__ = ["AdaptiveBlur", "AdaptiveCodebook", "EssentialFeatures", "FixedCodebook", "FrozenPalette"]


class _PixelTransform(TransformModule):
    """What the three adaptive transforms share: a rule for the blur, and one for the palette if there is any."""

    def __init__(self, blur: BlurRule, palette: PaletteRule | None, settings: dict):
        super().__init__(settings)
        self.blur_rule, self.palette_rule = blur, palette
        self._numbers = (*ops.blur_numbers(blur), ops.palette_numbers(palette))

    def forward(self, x: Tensor) -> Tensor:
        """The transformed images, (B,C,H,W) like x."""
        check_form(x)
        return ops.discretize(
            x,
            *self._numbers,
            self._surrogate,
            self._softness,
            self._backend,
            looks_at_values(self._validate, x),
        )[0]

    def explain(self, x: Tensor) -> list[explaining.Explanation]:
        """What the transform decided, one explanation for each image of x (B,C,H,W)."""
        check_form(x)
        check_values(x)
        return explaining.explain(x, self.blur_rule, self.palette_rule, self._backend)

    @classmethod
    def preset(cls, name: str, image_size: int | Sequence[int] | None = None) -> Self:
        """The transform of one of the paper's experiments, with kernels rescaled to another image size."""
        accepted = inspect.signature(cls).parameters
        return cls(**{key: v for key, v in preset_settings(name, image_size).items() if key in accepted})


class AdaptiveBlur(_PixelTransform):
    """Images blurred the more, the weaker their edges (Paper: Adaptive Blurring)."""

    def __init__(
        self,
        *,
        kernel_sizes: Sequence[int] = (5, 3, 1),
        edge_thresholds: Sequence[float] = (20, 40),
        surrogate: str = "bpda",
        backend: str = "auto",
        validate: bool | None = None,
    ):
        settings: dict[str, Any] = {
            "kernel_sizes": as_list("kernel_sizes", kernel_sizes),
            "edge_thresholds": as_list("edge_thresholds", edge_thresholds),
            "surrogate": surrogate,
            "backend": backend,
            "validate": validate,
        }
        super().__init__(BlurRule.of(settings["kernel_sizes"], settings["edge_thresholds"]), None, settings)


class _CodebookTransform(_PixelTransform):
    def frozen(self, images: Tensor) -> "FrozenPalette":
        """A module that paints with the palettes of these images (B,C,H,W), whatever it is given."""
        check_form(images)
        if looks_at_values(self._validate, images):
            check_values(images)
        run = kernels(self._backend, images.device)
        y, _ = run.blur(laid_out(images.detach()), self.blur_rule)
        palette, _, num_colors = run.find_palette(y, self.palette_rule)
        return FrozenPalette(self.blur_rule, palette, num_colors, backend=self._backend, validate=self._validate)


class AdaptiveCodebook(_CodebookTransform):
    """Images painted with few colours, found for each by itself (Paper: Selecting an Adaptive Codebook)."""

    def __init__(
        self,
        *,
        eps: float = 8 / 255,
        bin_levels: int = 16,
        thumbnail_size: int = 32,
        lloyd_steps: int = 20,
        separation: float = 3.0,
        order: str = "population",
        at_least_two: bool = False,
        surrogate: str = "bpda",
        softness: float = 0.1,
        backend: str = "auto",
        validate: bool | None = None,
    ):
        codebook: dict[str, Any] = {
            "eps": eps,
            "bin_levels": bin_levels,
            "thumbnail_size": thumbnail_size,
            "lloyd_steps": lloyd_steps,
            "separation": separation,
            "order": order,
            "at_least_two": at_least_two,
        }
        rest = {"surrogate": surrogate, "softness": softness, "backend": backend, "validate": validate}
        super().__init__(NO_BLUR, PaletteRule.of(**codebook), {**codebook, **rest})


class EssentialFeatures(_CodebookTransform):
    """Images blurred by their edges, then painted with few colours of their own (the paper's transform)."""

    def __init__(
        self,
        *,
        eps: float = 8 / 255,
        kernel_sizes: Sequence[int] = (5, 3, 1),
        edge_thresholds: Sequence[float] = (20, 40),
        bin_levels: int = 16,
        thumbnail_size: int = 32,
        lloyd_steps: int = 20,
        separation: float = 3.0,
        order: str = "population",
        at_least_two: bool = False,
        surrogate: str = "bpda",
        softness: float = 0.1,
        backend: str = "auto",
        validate: bool | None = None,
    ):
        blur: dict[str, Any] = {
            "kernel_sizes": as_list("kernel_sizes", kernel_sizes),
            "edge_thresholds": as_list("edge_thresholds", edge_thresholds),
        }
        codebook: dict[str, Any] = {
            "eps": eps,
            "bin_levels": bin_levels,
            "thumbnail_size": thumbnail_size,
            "lloyd_steps": lloyd_steps,
            "separation": separation,
            "order": order,
            "at_least_two": at_least_two,
        }
        rest = {"surrogate": surrogate, "softness": softness, "backend": backend, "validate": validate}
        super().__init__(BlurRule.of(**blur), PaletteRule.of(**codebook), {**blur, **codebook, **rest})


class FrozenPalette(nn.Module):
    """Images blurred by their own edges and painted with given palettes, one for each image of the batch."""

    palette: Tensor
    num_colors: Tensor

    def __init__(
        self,
        blur: BlurRule,
        palette: Tensor,
        num_colors: Tensor,
        *,
        backend: str = "auto",
        validate: bool | None = None,
    ):
        super().__init__()
        self._blur, self._backend, self._validate = blur, backend, validate
        self.register_buffer("palette", palette, persistent=False)
        self.register_buffer("num_colors", num_colors, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The repainted images, (B,C,H,W) like x; B is the number of palettes."""
        check_form(x)
        if (len(x), x.shape[1]) != (len(self.palette), self.palette.shape[2]):
            raise InputError(
                f"got {len(x)} images of {x.shape[1]} channels for {len(self.palette)} frozen palettes of "
                f"{self.palette.shape[2]}: give as many as were frozen, in the same order"
            )
        check = looks_at_values(self._validate, x)
        blur = ops.blur_numbers(self._blur)
        return ops.repaint(x, self.palette, self.num_colors, *blur, self._backend, check)[0]

    def extra_repr(self) -> str:
        return f"{len(self.palette)} palettes, kernel_sizes={self._blur.kernel_sizes}"
