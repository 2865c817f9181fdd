"""Several processes on one ledger, as torchrun starts them."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from linocut.errors import InputError


@dataclass(frozen=True)
class Workers:
    """This process's number among all, and how they wait for each other."""

    rank: int = 0
    count: int = 1
    local_rank: int = 0

    def wait(self) -> None:
        """Returns when every worker is here."""
        if self.count > 1:
            dist.barrier()

    def first_does(self, work: Callable[[], Any]) -> Any:
        """What `work` returns in worker 0, in all of them; its InputError is raised in all of them too."""
        if self.count == 1:
            return work()
        box: list[Any] = [None, None]
        if self.rank == 0:
            try:
                box[0] = work()
            except InputError as reason:
                box[1] = str(reason)
        dist.broadcast_object_list(box, src=0)
        if box[1] is not None:
            raise InputError(box[1])
        return box[0]


@contextmanager
def joined() -> Iterator[Workers]:
    """The workers that torchrun started, or this process alone.

    They only wait for each other and never exchange a tensor, so gloo serves with GPUs too. Nobody knows how
    much longer the slowest one takes: the time limit is a week.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Workers()
        return
    dist.init_process_group("gloo", timeout=timedelta(days=7))
    try:
        yield Workers(rank=dist.get_rank(), count=count, local_rank=int(os.environ.get("LOCAL_RANK", "0")))
    finally:
        dist.destroy_process_group()
