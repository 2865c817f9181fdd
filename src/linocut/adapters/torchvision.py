"""The transform as a torchvision v2 transform."""

from collections.abc import Sequence
from typing import Any, Self

import torch
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms import v2

from linocut.errors import InputError
from linocut.transform.apply import apply, as_levels
from linocut.transform.modules import EssentialFeatures


def _is_plain(value: Any) -> bool:
    """Whether it is a tensor and nothing more: masks and boxes are tensors too."""
    return isinstance(value, torch.Tensor) and not isinstance(value, tv_tensors.TVTensor)


class EssentialFeaturesV2(v2.Transform):
    """Images painted in few colours; labels, boxes and masks pass as they are.

    Takes what v2 transforms take: any nesting of images (..., C, H, W), tensors or tv_tensors, float32 in [0,1] or
    uint8 in 0..255 (given back as uint8, colours rounded half to even), and Pillow images of mode L or RGB.
    Settings are keyword arguments of EssentialFeatures.
    """

    _transformed_types = (_is_plain, tv_tensors.Image, tv_tensors.Video, Image.Image)

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.features = EssentialFeatures(**settings)

    @classmethod
    def preset(cls, name: str, image_size: int | Sequence[int] | None = None) -> Self:
        """The transform of one of the paper's experiments, with kernels rescaled to another image size."""
        return cls(**EssentialFeatures.preset(name, image_size).settings())

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The image or images in few colours, of the same type, dtype and shape."""
        if isinstance(inpt, Image.Image):
            return apply(inpt, **self.features.settings())
        plain = inpt.as_subclass(torch.Tensor)
        if plain.ndim < 3:
            raise InputError(f"got an image of shape {tuple(plain.shape)}; wanted (..., C, H, W)")
        batch = plain.reshape(-1, *plain.shape[-3:])
        if plain.dtype == torch.uint8:
            painted = as_levels(self.features(batch.float().div_(255)))
        else:
            painted = self.features(batch)
        return tv_tensors.wrap(painted.reshape(plain.shape), like=inpt)
