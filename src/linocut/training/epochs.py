"""Which examples make up each batch, and which window is cut from each: functions of seed and epoch.

Example i belongs to shard i mod S; every batch takes the same share from every shard, and a process owns
whole shards. So a batch holds the same examples whether one process trains or S of them do.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from linocut.data.augment import Size, Windows
from linocut.errors import InputError
from linocut.training.config import TrainingConfig
from linocut.training.streams import stream


@dataclass(frozen=True, kw_only=True)
class Batch:
    """This process's part of one batch: places (B,) in its store, windows, a seed for each example, the whole size.

    A process whose shards have run dry gets one example with `idle` true: it keeps step and counts nothing.
    """

    examples: torch.Tensor
    windows: Windows
    seeds: torch.Tensor
    whole_size: int
    idle: bool


@dataclass(frozen=True, kw_only=True)
class Ownership:
    """The shards of process `rank` of `world`, among `num_examples` examples."""

    num_examples: int
    shards: int
    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        if self.shards % self.world:
            raise InputError(f"{self.world} processes cannot share {self.shards} shards: set shards={self.world}")
        if self.num_examples < self.shards:
            raise InputError(f"{self.num_examples} examples are too few for {self.shards} shards")

    def own_shards(self) -> range:
        each = self.shards // self.world
        return range(self.rank * each, (self.rank + 1) * each)

    def shard(self, number: int) -> torch.Tensor:
        """The ids of the examples of a shard."""
        return torch.arange(number, self.num_examples, self.shards)

    def examples(self) -> torch.Tensor:
        """The ids of this process's examples, ascending: the order of its store."""
        return torch.cat([self.shard(number) for number in self.own_shards()]).sort().values

    def places(self, number: int) -> torch.Tensor:
        """Where the examples of an own shard lie in the store."""
        return torch.searchsorted(self.examples(), self.shard(number))


def steps_per_epoch(config: TrainingConfig, num_examples: int) -> int:
    return math.ceil(math.ceil(num_examples / config.shards) / (config.batch_size // config.shards))


def smallest_part(config: TrainingConfig, own: Ownership) -> int:
    """The fewest examples that a process gets in a step: of an epoch's last batch; one where it is idle."""
    share = config.batch_size // config.shards
    before = (steps_per_epoch(config, own.num_examples) - 1) * share
    return max(1, sum(max(0, min(share, len(own.shard(number)) - before)) for number in own.own_shards()))


class EpochPlan:
    """The batches of one epoch, drawn at once and kept on the device."""

    def __init__(self, config: TrainingConfig, own: Ownership, epoch: int, image: Size, device: torch.device | str):
        self.num_steps = steps_per_epoch(config, own.num_examples)
        self._share = config.batch_size // config.shards
        self._sizes = [len(own.shard(number)) for number in range(config.shards)]
        canvas = (image[0] + 2 * config.pad, image[1] + 2 * config.pad)
        everyone = Windows.draw(
            own.num_examples, canvas, image, flip=config.flip, generator=stream(config.seed, "windows", epoch)
        )
        mine = own.examples()
        self._rows = everyone.rows[mine].to(device)
        self._columns = everyone.columns[mine].to(device)
        seeds = torch.randint(2**62, (own.num_examples,), generator=stream(config.seed, "examples", epoch))
        self._seeds = seeds[mine].to(device)
        self._orders = []
        for number in own.own_shards():
            places = own.places(number)
            order = torch.randperm(len(places), generator=stream(config.seed, "order", epoch, number))
            self._orders.append(places[order].to(device))

    def batch(self, step: int) -> Batch:
        """The batch of a step of this epoch."""
        part = slice(step * self._share, (step + 1) * self._share)
        examples = torch.cat([order[part] for order in self._orders])
        idle = len(examples) == 0
        if idle:
            examples = self._orders[0][:1]
        windows = Windows(rows=self._rows[examples], columns=self._columns[examples])
        whole = sum(len(range(size)[part]) for size in self._sizes)
        return Batch(examples=examples, windows=windows, seeds=self._seeds[examples], whole_size=whole, idle=idle)

    def batches(self, first: int = 0) -> Iterator[Batch]:
        for step in range(first, self.num_steps):
            yield self.batch(step)
