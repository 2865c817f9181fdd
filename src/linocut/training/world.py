"""The processes that train together: who this one is, and what they agree on at each step."""

import os
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from linocut.errors import InputError
from linocut.models.devices import device_named

PATIENCE = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class World:
    """Process `rank` of `size`. `talk` carries small CPU tensors; None where the process is alone."""

    rank: int = 0
    size: int = 1
    talk: dist.ProcessGroup | None = None

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def any(self, *flags: bool) -> list[bool]:
        """For each flag, whether any process raised it. Every process must call this at the same place."""
        if self.talk is None:
            return list(flags)
        raised = torch.tensor(flags, dtype=torch.int32)
        dist.all_reduce(raised, dist.ReduceOp.MAX, group=self.talk)
        return [bool(flag) for flag in raised]

    def total(self, *numbers: float) -> list[float]:
        """The sum of each number over all processes."""
        if self.talk is None:
            return list(numbers)
        sums = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(sums, group=self.talk)
        return sums.tolist()

    def gather(self, words: dict[str, str]) -> dict[str, str]:
        """What all processes said, together."""
        if self.talk is None:
            return words
        said: list[dict[str, str]] = [{} for _ in range(self.size)]
        dist.all_gather_object(said, words, group=self.talk)
        return {key: value for part in said for key, value in part.items()}

    def wait(self) -> None:
        """Return when every process has come here."""
        if self.talk is not None:
            dist.barrier(group=self.talk)


def join_world(device: torch.device) -> World:
    """The world that torchrun set up, or a world of one where it did not."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return World()
    if not dist.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        try:
            store, rank, size = next(dist.rendezvous("env://", timeout=PATIENCE))
            # A restarted world must not find the addresses that the dead processes left in a shared store.
            life = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
            own_store = dist.PrefixStore(f"life-{life}", store)
            dist.init_process_group(backend, store=own_store, rank=rank, world_size=size, timeout=PATIENCE)
        except (ValueError, RuntimeError) as error:
            raise InputError(f"cannot join {size} processes: {error}; start them with torchrun") from error
    return World(rank=dist.get_rank(), size=size, talk=dist.new_group(backend="gloo", timeout=PATIENCE))


def is_first_process() -> bool:
    """Whether this process is the one that speaks, before or after the world is joined."""
    return os.environ.get("RANK", "0") == "0"


def local_device(name: str) -> torch.device:
    """The device to train on, made torch's current one; under torchrun each process takes its own GPU."""
    device = device_named(name)
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"training has not been tried on {name!r}: use cpu, cuda or auto")
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", torch.cuda.current_device())))
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def leave_world() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
