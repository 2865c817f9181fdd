"""The steps of a run one after another, with everything that happens between them."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from linocut.errors import InputError
from linocut.training.capture import CapturedStep, can_capture
from linocut.training.checkpoints import (
    discard_after,
    find_checkpoint,
    refuse_other_run,
    restore_checkpoint,
    save_checkpoint,
)
from linocut.training.config import TrainingConfig
from linocut.training.epochs import Batch, EpochPlan, Ownership, steps_per_epoch
from linocut.training.gauge import Gauge, Tally, is_sound
from linocut.training.interruption import Interruption
from linocut.training.journal import Journal
from linocut.training.schedule import learning_rate
from linocut.training.trainer import Trainer

LOG = logging.getLogger(__name__)
ROWS_PER_EPOCH = 10
SHARE_FOR_SAVING = 0.03  # of the time, where nobody said how often to save


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands: for progress bars."""

    step: int
    total_steps: int
    epoch: int
    loss: float
    robust_accuracy: float
    images_per_second: float


class Loop:
    """A run at some step: it resumes, goes on, logs, saves, and stops when told to."""

    def __init__(
        self,
        config: TrainingConfig,
        trainer: Trainer,
        own: Ownership,
        out: Path,
        data_hash: str,
        wish: Interruption,
        watch: Callable[[Progress], None] | None,
        *,
        every: int | None,
    ):
        self.config, self.trainer, self.own, self.out, self.wish = config, trainer, own, out, wish
        self.data_hash, self.watch = data_hash, watch
        self.per_epoch = steps_per_epoch(config, own.num_examples)
        self.total = config.epochs * self.per_epoch
        self.every = every  # steps between checkpoints, where the user said so
        self.gauge, self.tally, self.since = Gauge(trainer.labels.device), Tally(), time.monotonic()
        self.step = 0
        self.saved: int | None = None
        self.saved_at, self.saving_took = 0.0, 0.0
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
        elif any(self.checkpoints.glob("step-*")):
            LOG.warning("no checkpoint is whole: the run starts anew")
        self.trainer.world.wait()
        if self.trainer.world.leads:
            discard_after(self.checkpoints, self.step)

    def go(self) -> None:
        """Take the steps that are left; stop early when a signal came or the loss is no number."""
        captured = self.config.compile and can_capture(self.trainer)
        take = CapturedStep(self.trainer) if captured else self.trainer.step
        journal = Journal(self.out, self.step) if self.trainer.world.leads else None
        self.since = time.monotonic()  # resuming is no training
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
                    if self._save_is_due():
                        self.save()
            self.save()
        finally:
            if journal is not None:
                journal.close()

    def _told_alone(self) -> bool:
        """Whether a signal came since the step; with others, it waits until all agree after the next."""
        self.stopping = self.trainer.world.size == 1 and self.wish.signal is not None
        return self.stopping

    def _save_is_due(self) -> bool:
        """At the user's steps; else after an epoch, unless saving so often would take more than its share."""
        if self.step == self.total or self.step % (self.every or self.per_epoch):
            return False
        earliest = self.saved_at + self.saving_took / SHARE_FOR_SAVING
        [due] = self.trainer.world.any(self.every is not None or time.monotonic() >= earliest)
        return due

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
            raise self._no_number("the loss is no finite number near")
        self.stopping = self.stopping or stop
        if known is not None:
            self.tally.loss += known[0]
            self.tally.correct += known[1]
            self.tally.seen += known[2]

    def _no_number(self, found: str) -> InputError:
        kept = "no checkpoint was saved yet" if self.saved is None else f"step {self.saved} is saved and good"
        return InputError(f"{found} step {self.step}; {kept}; start anew with a lower learning_rate")

    def save(self) -> None:
        """Write a checkpoint of this step, unless it stands already or holds what is no number."""
        self._note(self.gauge.rest())
        if self.saved == self.step:
            return
        # The loss comes before the update: it can be the last good number of weights that are none any more.
        [spoilt] = self.trainer.world.any(not self.trainer.is_finite())
        if spoilt:
            raise self._no_number("the weights are no finite numbers after")
        began = time.monotonic()
        save_checkpoint(self.checkpoints, self.step, self.trainer, self.own, self.data_hash)
        self.saved, self.saved_at = self.step, time.monotonic()
        self.saving_took = self.saved_at - began

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
