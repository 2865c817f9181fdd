"""A training run from its folder's lock to its model card; what a step does is in trainer.py."""

import contextlib
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from linocut.data import Images
from linocut.data.augment import Size
from linocut.errors import InputError
from linocut.models import Architecture
from linocut.training.canvas import Canvas, fits_in_memory
from linocut.training.checkpoints import sweep
from linocut.training.config import TrainingConfig
from linocut.training.curves import draw_curves
from linocut.training.epochs import Ownership, smallest_part
from linocut.training.finish import save_result
from linocut.training.fitting import fitted, rebuilt
from linocut.training.folder import claim, own_folder
from linocut.training.interruption import Interruption
from linocut.training.loop import Loop, Progress
from linocut.training.trainer import Trainer
from linocut.training.world import World, join_world


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended: after how many steps, by which signal if by one, and with what measured."""

    step: int
    signal: int | None
    metrics: dict[str, Any]


def train(
    config: TrainingConfig,
    images: Images,
    out: Path,
    *,
    test_images: Images | None = None,
    device: torch.device | str = "cpu",
    resume: bool = False,
    checkpoint_every: int | None = None,
    on_disk: bool | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Train by the config, leaving config, log, checkpoints, curves and the model in the folder `out`.

    checkpoint_every: steps between checkpoints; None is one an epoch, or fewer where writing them would take more
    than 3 % of the time. on_disk: whether the canvases live in a
    memory-mapped file; None decides by the memory that is free. With `resume`, a run that stands in the
    folder goes on from its last whole checkpoint, bit for bit on a CPU as if it had never stopped.
    """
    if checkpoint_every is not None and checkpoint_every < 1:
        raise InputError(f"checkpoint_every must be at least 1 step, got {checkpoint_every}")
    device = torch.device(device)
    config = fitted(config, images)
    world = join_world(device)
    own = Ownership(num_examples=len(images.labels), shards=config.shards, rank=world.rank, world=world.size)
    with contextlib.ExitStack() as stack:
        if world.leads:
            stack.enter_context(own_folder(out))
            claim(out, config, resume=resume)
            sweep(out / "checkpoints")
        world.wait()
        wish = stack.enter_context(Interruption())
        stack.callback(canvas_file(out, world).unlink, missing_ok=True)
        trainer = make_trainer(config, images, own, device, world, out, on_disk)
        run = Loop(config, trainer, own, out, images.sha256, wish, watch, every=checkpoint_every)
        with _flags(device):
            run.resume()
            run.go()
        metrics: dict[str, Any] = {}
        if run.stopping:
            return Outcome(step=run.step, signal=wish.signal or signal.SIGTERM, metrics=metrics)
        if world.leads:
            metrics = save_result(out, config, trainer, images, test_images, device)
            draw_curves(out)
        return Outcome(step=run.step, signal=None, metrics=metrics)


def make_trainer(
    config: TrainingConfig,
    images: Images,
    own: Ownership,
    device: torch.device,
    world: World,
    out: Path,
    on_disk: bool | None,
) -> Trainer:
    """A trainer at step 0 with this process's share of the images."""
    mine = own.examples()
    pixels = images.pixels if len(mine) == len(images.labels) else images.pixels[mine]
    store = config.canvas_store if config.method == "atta" else None
    if on_disk is None:
        on_disk = not fits_in_memory(pixels, config.pad, store, device)
    file = canvas_file(out, world) if on_disk else None
    canvas = Canvas(pixels, pad=config.pad, eps=config.eps, store=store, device=device, file=file)
    transform = None
    # A stored start may lie outside [0,1] by its rounding: training lets the transform clamp it.
    made = rebuilt(config, validate=False)
    if made is not None:
        made.to(device)
        made(torch.zeros(1, pixels.shape[1], *canvas.image, device=device))  # what fails here would fail at the end
        transform = made if config.transform_at == "train" else None
    network = Architecture(name=config.architecture, num_classes=len(images.classes), in_channels=pixels.shape[1])
    check_takes(network, canvas.image)
    check_learns(network, canvas.image, smallest_part(config, own))
    return Trainer(
        config, canvas, images.labels[mine], network=network, transform=transform, device=device, world=world
    )


def canvas_file(out: Path, world: World) -> Path:
    """Where the canvases of a process live while it runs, if they do not fit in memory."""
    return out / f"canvas-{world.rank}.work"


def check_takes(network: Architecture, image: Size) -> None:
    """Raise InputError where a network cannot take images of this size; costs no memory."""
    try:
        network.outline().eval()(torch.empty(1, network.in_channels, *image, device="meta"))
    except RuntimeError as error:
        raise InputError(f"{network.name} cannot take images of {image[0]}x{image[1]}: {error}") from error


def check_learns(network: Architecture, image: Size, fewest: int) -> None:
    """Raise InputError where a batch of so few has no statistics for a network; costs no memory."""
    try:
        network.outline().train()(torch.empty(fewest, network.in_channels, *image, device="meta"))
    except ValueError as error:
        raise InputError(
            f"the last batch of an epoch would be {fewest} here, too few for the batch statistics of {network.name} "
            f"at {image[0]}x{image[1]}: choose another batch_size"
        ) from error


@contextlib.contextmanager
def _flags(device: torch.device) -> Any:
    with torch.backends.cudnn.flags(enabled=True, benchmark=device.type == "cuda", deterministic=False):
        yield
