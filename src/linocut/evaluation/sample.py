"""Which examples are judged: a fixed shuffled order, cut into fixed batches."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

from linocut.errors import InputError


@dataclass(frozen=True)
class Batch:
    """A cut of the order: its number, and the data set's indices of its examples."""

    number: int
    examples: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The first `n` examples of a shuffled data set of `size`.

    Official test sets may be sorted by class, so the order is by a hash of (seed, index): the sample of a
    smaller n is the beginning of that of a larger one. Batches depend on nothing but this record, and a worker
    takes whole ones, so no result depends on the number of workers.
    """

    size: int
    n: int
    batch_size: int
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.n <= self.size:
            raise InputError(f"n must lie between 1 and the {self.size} examples there are, got {self.n}")
        if self.batch_size < 1:
            raise InputError(f"batch_size must be at least 1, got {self.batch_size}")

    @cached_property
    def order(self) -> tuple[int, ...]:
        def place(index: int) -> bytes:
            return hashlib.sha256(f"{self.seed}:{index}".encode()).digest()

        return tuple(sorted(range(self.size), key=place)[: self.n])

    @cached_property
    def position(self) -> dict[int, int]:
        return {example: place for place, example in enumerate(self.order)}

    def batches(self, worker: int = 0, workers: int = 1) -> list[Batch]:
        """The batches of one worker: every `workers`-th one."""
        cuts = [self.order[i : i + self.batch_size] for i in range(0, self.n, self.batch_size)]
        return [Batch(number, cut) for number, cut in enumerate(cuts)][worker::workers]
