"""A training run from its folder's lock to its model card; what a step does is in trainer.py."""

import contextlib
import logging
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from linocut.data import Images
from linocut.data.augment import Size
from linocut.errors import InputError
from linocut.models import Architecture
from linocut.models.store import rebuild_transform
from linocut.training.canvas import Canvas, fits_in_memory
from linocut.training.capture import CapturedStep, can_capture
from linocut.training.checkpoints import (
    discard_after,
    find_checkpoint,
    refuse_other_run,
    restore_checkpoint,
    save_checkpoint,
    sweep,
)
from linocut.training.config import TrainingConfig
from linocut.training.curves import draw_curves
from linocut.training.epochs import Batch, EpochPlan, Ownership, steps_per_epoch
from linocut.training.finish import save_result
from linocut.training.folder import claim, own_folder
from linocut.training.gauge import Gauge, Tally, is_sound
from linocut.training.interruption import Interruption
from linocut.training.journal import Journal
from linocut.training.schedule import learning_rate
from linocut.training.trainer import Trainer
from linocut.training.world import World, join_world

LOG = logging.getLogger(__name__)
ROWS_PER_EPOCH = 10


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands: for progress bars."""

    step: int
    total_steps: int
    epoch: int
    loss: float
    robust_accuracy: float
    images_per_second: float


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

    checkpoint_every: steps between checkpoints; None is one an epoch. on_disk: whether the canvases live in a
    memory-mapped file; None decides by the memory that is free. With `resume`, a run that stands in the
    folder goes on from its last whole checkpoint, bit for bit on a CPU as if it had never stopped.
    """
    if checkpoint_every is not None and checkpoint_every < 1:
        raise InputError(f"checkpoint_every must be at least 1 step, got {checkpoint_every}")
    device = torch.device(device)
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
        run = _Run(config, trainer, own, out, images.sha256, wish, watch)
        run.every = run.per_epoch if checkpoint_every is None else checkpoint_every
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
    if config.transform is not None and config.transform_at == "train":
        # A stored start may lie outside [0,1] by its rounding: training lets the transform clamp it.
        settings = {**config.transform["settings"], "validate": False}
        transform = rebuild_transform(config.transform["class"], settings, source=config.recipe).to(device)
    network = Architecture(name=config.architecture, num_classes=len(images.classes), in_channels=pixels.shape[1])
    check_takes(network, canvas.image)
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


@contextlib.contextmanager
def _flags(device: torch.device) -> Any:
    with torch.backends.cudnn.flags(enabled=True, benchmark=device.type == "cuda", deterministic=False):
        yield


class _Run:
    """The loop and its bookkeeping."""

    def __init__(
        self,
        config: TrainingConfig,
        trainer: Trainer,
        own: Ownership,
        out: Path,
        data_hash: str,
        wish: Interruption,
        watch: Callable[[Progress], None] | None,
    ):
        self.config, self.trainer, self.own, self.out, self.wish = config, trainer, own, out, wish
        self.data_hash, self.watch = data_hash, watch
        self.per_epoch = steps_per_epoch(config, own.num_examples)
        self.total = config.epochs * self.per_epoch
        self.every = self.per_epoch
        self.device = trainer.labels.device
        self.step = 0
        self.saved: int | None = None
        self.stopping = False  # what all processes agreed on, unlike the wish of one

    @property
    def checkpoints(self) -> Path:
        return self.out / "checkpoints"

    def resume(self) -> None:
        """Go to the last whole checkpoint, where there is one."""
        found = find_checkpoint(self.checkpoints, LOG.warning)
        if found is not None:
            refuse_other_run(found, self.config, self.data_hash)
            restore_checkpoint(found, self.trainer, self.own)
            self.step = self.saved = found.step
        self.trainer.world.wait()
        if self.trainer.world.leads:
            discard_after(self.checkpoints, self.step)

    def go(self) -> None:
        """Take the steps that are left; stop early when a signal came or the loss is no number."""
        captured = self.config.compile and can_capture(self.trainer)
        take = CapturedStep(self.trainer) if captured else self.trainer.step
        journal = Journal(self.out, self.step) if self.trainer.world.leads else None
        self.gauge, self.tally, self.since = Gauge(self.device), Tally(), time.monotonic()
        try:
            while self.step < self.total and not self.stopping:
                epoch, within = divmod(self.step, self.per_epoch)
                self._start_epoch(epoch, within)
                size = self.trainer.canvas.image
                plan = EpochPlan(self.config, self.own, epoch, size, self.trainer.canvas.home)
                for batch in plan.batches(within):
                    self._one(take, batch)
                    if self.step % max(1, self.per_epoch // ROWS_PER_EPOCH) == 0 or self.step == self.total:
                        self._log(journal)
                    if self.stopping or self._told_alone():
                        break
                    if self.step % self.every == 0 and self.step < self.total:
                        self.save()
            self.save()
        finally:
            if journal is not None:
                journal.close()

    def _told_alone(self) -> bool:
        """Whether a signal came since the step; with others, it waits until all agree after the next."""
        self.stopping = self.trainer.world.size == 1 and self.wish.signal is not None
        return self.stopping

    def _start_epoch(self, epoch: int, within: int) -> None:
        due = epoch == 0 or (self.config.reset_every and epoch % self.config.reset_every == 0)
        if within == 0 and due and self.config.method == "atta":
            self.trainer.start_segment(self.own, epoch)

    def _one(self, take: Callable[[Batch], torch.Tensor], batch: Batch) -> None:
        self.trainer.set_turn(self.step, learning_rate(self.config, self.step, self.per_epoch))
        known = self.gauge.give(take(batch))
        self.step += 1
        self._note(known)

    def _note(self, known: list[float] | None) -> None:
        unsound, stop = self.trainer.world.any(not is_sound(known), self.wish.signal is not None)
        if unsound:
            kept = "no checkpoint was saved yet" if self.saved is None else f"step {self.saved} is saved and good"
            advice = "start anew with a lower learning_rate"
            raise InputError(f"the loss is no finite number near step {self.step}; {kept}; {advice}")
        self.stopping = self.stopping or stop
        if known is not None:
            self.tally.loss += known[0]
            self.tally.correct += known[1]
            self.tally.seen += known[2]

    def save(self) -> None:
        """Write a checkpoint of this step, unless it stands already or its loss is no number."""
        self._note(self.gauge.rest())
        if self.saved != self.step:
            save_checkpoint(self.checkpoints, self.step, self.trainer, self.own, self.data_hash)
            self.saved = self.step

    def _log(self, journal: Journal | None) -> None:
        loss, correct, seen = self.trainer.world.total(self.tally.loss, self.tally.correct, self.tally.seen)
        if not seen:
            return
        now = time.monotonic()
        progress = Progress(
            step=self.step,
            total_steps=self.total,
            epoch=(self.step - 1) // self.per_epoch,
            loss=loss / seen,
            robust_accuracy=correct / seen,
            images_per_second=seen / max(1e-9, now - self.since),
        )
        self.tally, self.since = Tally(), now
        if journal is not None:
            rate = learning_rate(self.config, self.step - 1, self.per_epoch)
            row = {name: value for name, value in vars(progress).items() if name != "total_steps"}
            journal.write({**row, "learning_rate": rate})
        if self.watch is not None:
            self.watch(progress)
