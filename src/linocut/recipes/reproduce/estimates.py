"""How long each step will take on this machine, from timed steps."""

from dataclasses import replace
from typing import Any

from linocut.recipes.reproduce.calibration import Calibration, Speed
from linocut.recipes.reproduce.costs import cost
from linocut.recipes.reproduce.judging import Evaluate
from linocut.recipes.reproduce.making import FitCodebook, Model, Train
from linocut.recipes.reproduce.step import Step, Workshop
from linocut.training.epochs import steps_per_epoch

CODEBOOK_PIXELS = 2e7  # a second: what counting the colours of all pixels does at least on one core
START, PAGE = 1.0, 0.5  # seconds that a step and a ledger on the page cost in any case


def estimate(step: Step, shop: Workshop, calibration: Calibration) -> dict[str, Any]:
    """Seconds, whether they are an upper bound, and whether whole batches were timed.

    An attack is reckoned as if no image ever broke; those that break leave, so a weak network takes less.
    """
    if isinstance(step, FitCodebook):
        pixels = shop.shelf.train(step.work).pixels
        return _told(START + pixels.numel() / pixels.shape[1] / CODEBOOK_PIXELS)
    if isinstance(step, Model):
        images, test = shop.shelf.train(step.work), shop.shelf.test(step.work)
        speed = calibration.of(step.work, images)
        seconds, whole = START + speed.query.of(len(test), 250), speed.whole
        if isinstance(step, Train):
            turn = calibration.step(step.work, images)
            seconds += step.work.config.epochs * steps_per_epoch(step.work.config, len(images)) * turn.whole
            whole = whole and turn.timed
        return _told(seconds, replace(speed, whole=whole))
    if isinstance(step, Evaluate):
        speed = calibration.of(step.work, shop.shelf.train(step.work))
        size = step.judgement.batch_size
        costs = [cost(entry, step.count(shop)) for entry in step.entries(shop)]
        seconds = sum(
            each.gradients * speed.gradient.of(each.images, size) + each.queries * speed.query.of(each.images, size)
            for each in costs
        )
        return _told(START + seconds, speed, at_most=True)
    return _told(START + PAGE * len(step.needs))


def _told(seconds: float, speed: Speed | None = None, *, at_most: bool = False) -> dict[str, Any]:
    told = {"seconds": round(seconds, 1), "at_most": at_most, "whole_batches": speed is None or speed.whole}
    # What the transform alone costs an image is part of the seconds; a reader wants to see it by itself.
    return told | ({"transform_seconds": speed.transform} if speed is not None and speed.transform else {})
