"""The transform of a config; a fixed codebook has to see the training images before there is one."""

from dataclasses import replace
from typing import Any

from torch import nn

from linocut.data import Images
from linocut.models.store import fit_transform, rebuild_transform
from linocut.training.config import TrainingConfig


def fitted(config: TrainingConfig, images: Images) -> TrainingConfig:
    """The config with what its transform learns from the training images in place of the wish to fit it.

    The same images give the same codes, so every process and every resumed run finds them by itself; a run's
    folder and its checkpoints hold them with the images' hash, and refuse others.
    """
    if config.transform is None or "fit" not in config.transform:
        return config
    name, fit, settings = (config.transform[key] for key in ("class", "fit", "settings"))
    found = fit_transform(name, images, fit, settings, source=config.recipe)
    return replace(config, transform={"class": name, "settings": found.settings()})


def rebuilt(config: TrainingConfig, **changes: Any) -> nn.Module | None:
    """The transform that the config names, with these settings changed; None where it has none."""
    if config.transform is None:
        return None
    return rebuild_transform(config.transform["class"], {**config.transform["settings"], **changes}, config.recipe)
