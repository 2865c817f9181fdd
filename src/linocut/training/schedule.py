"""The learning rate as a function of the step: nothing to save, nothing to restore."""

import math

from linocut.training.config import TrainingConfig


def learning_rate(config: TrainingConfig, step: int, steps_per_epoch: int) -> float:
    """The learning rate of a step, counted from 0.

    "steps": multiplied by gamma at the start of each milestone epoch. "one-cycle": up in a straight line over
    the warm-up, then down along half a cosine to 0 at the end.
    """
    if config.schedule == "steps":
        passed = sum(step >= epoch * steps_per_epoch for epoch in config.milestones)
        return config.learning_rate * config.gamma**passed
    total = config.epochs * steps_per_epoch
    rising = max(1, round(config.warmup * total))
    if step < rising:
        return config.learning_rate * (step + 1) / rising
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1, total - rising)))
