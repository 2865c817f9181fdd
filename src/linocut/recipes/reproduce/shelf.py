"""The data sets of a reproduction, each read once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from linocut.data import Images, load
from linocut.data.dataset import from_arrays
from linocut.data.survey import present
from linocut.recipes.reproduce.work import Work


class Shelf:
    """Splits by name, as many of their images as a work asks for; the last few are kept."""

    KEPT = 4

    def __init__(self, root: Path | None):
        self.root = root
        self._kept: dict[tuple[str, str, int | None, int | None], Images] = {}

    def holds(self, data_set: str) -> bool:
        """Whether the files of the data set are there; digits always are."""
        return data_set == "digits" or (self.root is not None and data_set in present(self.root))

    def train(self, work: Work) -> Images:
        """The images that the work is trained on."""
        return self._take(work, "train", work.train_images)

    def test(self, work: Work) -> Images:
        """All test images of the set that the work is judged on."""
        return self._take(work, "test", None)

    def _take(self, work: Work, split: str, count: int | None) -> Images:
        config = work.config
        key = (config.data_set, split, config.image_size, count)
        if key not in self._kept:
            images = load(config.data_set, self.root, split, config.image_size)
            while len(self._kept) >= self.KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = images if count is None else some_of(images, count)
        return self._kept[key]


def some_of(images: Images, count: int) -> Images:
    """So many of the images, evenly spread over the set, which may be sorted by class."""
    if count >= len(images):
        return images
    places = torch.from_numpy(np.linspace(0, len(images) - 1, count).round().astype(np.int64))
    few = from_arrays(
        pixels=images.pixels[places].cpu().numpy(),
        labels=images.labels[places].cpu().numpy(),
        classes=images.classes,
        name=images.name,
        split=images.split,
    )
    return replace(few, notes=(*images.notes, f"{count} of {len(images)} images, evenly spread"))
