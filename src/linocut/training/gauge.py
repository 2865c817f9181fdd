"""Loss and accuracy read from the device without making it wait."""

import math
from dataclasses import dataclass

import torch


@dataclass(kw_only=True)
class Tally:
    """Sums since the last log row."""

    loss: float = 0.0
    correct: float = 0.0
    seen: float = 0.0


class Gauge:
    """Holds the outcome of the last step on its way to the processor and hands over the one before.

    On a GPU the copy is asynchronous, so a loss is known one step later: by then one more step has been
    launched. On a CPU it is known at once.
    """

    def __init__(self, device: torch.device):
        self.on_gpu = device.type == "cuda"
        self.waiting: tuple[torch.Tensor, torch.cuda.Event] | None = None

    def give(self, outcome: torch.Tensor) -> list[float] | None:
        """Take in a step's (loss, correct, seen) and return the newest that is known."""
        if not self.on_gpu:
            return outcome.tolist()
        known = self.rest()
        host = torch.empty(outcome.shape, pin_memory=True)
        host.copy_(outcome, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record()
        self.waiting = (host, arrived)
        return known

    def rest(self) -> list[float] | None:
        """What has not been handed over yet, waiting for it."""
        if self.waiting is None:
            return None
        host, arrived = self.waiting
        arrived.synchronize()
        self.waiting = None
        return host.tolist()


def is_sound(outcome: list[float] | None) -> bool:
    """Whether a loss is a finite number (or not yet known)."""
    return outcome is None or math.isfinite(outcome[0])
