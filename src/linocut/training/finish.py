"""What a finished run leaves: the network with its card, and its accuracy on natural test images."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from linocut.data import Images
from linocut.models import Card, Defended, save
from linocut.models.devices import name_of
from linocut.training.config import TrainingConfig
from linocut.training.fitting import rebuilt
from linocut.training.trainer import Trainer

AT_ONCE = 250  # test images


def save_result(
    out: Path,
    config: TrainingConfig,
    trainer: Trainer,
    images: Images,
    test_images: Images | None,
    device: torch.device,
) -> dict[str, Any]:
    """Write OUT/model and return the metrics on its card. Robust accuracy is left to `linocut evaluate`."""
    network = trainer.final_network()
    if config.half_weights:
        round_to_half(network)  # first, so that what is measured is what is saved
    defended = Defended(rebuilt(config), network).eval()
    metrics = measured(defended, test_images, device)
    card = Card(
        architecture=trainer.architecture,
        data_set=config.data_set,
        classes=tuple(images.classes),
        recipe=origin(config, images.sha256, device),
        metrics=metrics,
    )
    save(out / "model", defended, card)
    return metrics


def origin(config: TrainingConfig, train_sha256: str, device: torch.device) -> dict[str, Any]:
    """What a card says of how its network came to be; train_sha256: the hash of its training images."""
    return {
        **config.to_json(),
        "train_sha256": train_sha256,
        "torch": torch.__version__,
        "device": name_of(device),
    }


def measured(defended: Defended, images: Images | None, device: torch.device) -> dict[str, Any]:
    """What a card says of a network on natural test images; nothing where there are none. Moves it to the device."""
    if images is None or not len(images.labels):
        return {}
    correct = count_correct(defended.to(device), images, device)
    many = len(images.labels)
    return {"test_accuracy": correct / many, "test_images": many, "test_sha256": images.sha256}


@torch.no_grad()
def round_to_half(network: nn.Module) -> None:
    """Round every kernel and matrix to the nearest half, in place; one that goes beyond their range stays as it is."""
    for tensor in network.state_dict().values():
        if tensor.is_floating_point() and tensor.dim() >= 2:
            rounded = tensor.half()
            if rounded.isfinite().all():
                tensor.copy_(rounded)


@torch.no_grad()
def count_correct(defended: Defended, images: Images, device: torch.device) -> int:
    """How many natural images are classified rightly."""
    correct = 0
    for first in range(0, len(images.labels), AT_ONCE):
        chosen = slice(first, first + AT_ONCE)
        logits = defended(images.pixels[chosen].to(device).float() / 255)
        correct += int((logits.argmax(dim=1).cpu() == images.labels[chosen]).sum())
    return correct
