"""Runs scenarios in forked processes: torch is imported once, and any of them may be killed.

    python nursery.py SCENARIO FOLDER [NUMBER ...]

Each scenario prints one line of JSON. Not a test module: the tests start it.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from conftest import TwoLayers, WithStatistics, make_config, make_images
from linocut.errors import InputError
from linocut.models import architecture
from linocut.training import run as run_module
from linocut.training import train
from linocut.training.trainer import Trainer

run_module.draw_curves = lambda out: None  # matplotlib would take longer than the training
architecture.NETWORKS.update({"two-layers": TwoLayers, "with-statistics": WithStatistics})


def child(work, *arguments):
    """The id of a process that does the work and ends with its status, or 70 after an exception."""
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        status = work(*arguments) or 0
    finally:
        os._exit(status)


def status_of(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run(out, **settings):
    train(make_config(**settings), make_images(), out, resume=True, checkpoint_every=2)


def kills(folder, count):
    """Kill a run at a random moment and let it go on to its end, `count` times."""
    long = {"epochs": 12}  # 60 steps
    assert status_of(child(lambda: run(folder / "straight", **long))) == 0
    dice, killed, resumed = random.Random(0), 0, 0
    for turn in range(count):
        out = folder / f"run-{turn}"
        pid = child(lambda out=out: run(out, **long))
        wait_for_rows(out / "log.jsonl", dice.randrange(40))
        time.sleep(dice.uniform(0, 0.03))
        os.kill(pid, signal.SIGKILL)
        killed += status_of(pid) == -9
        resumed += status_of(child(lambda out=out: run(out, **long))) == 0
    return {"killed": killed, "resumed": resumed}


def wait_for_rows(file, rows):
    while not file.exists() or file.read_bytes().count(b"\n") < rows:
        time.sleep(0.002)


def stages(folder, count):
    """Kill a run just before the n-th write, flush or rename of its second checkpoint, for each n in turn."""
    outcomes = []
    for stage in range(count):
        out = folder / f"run-{stage}"

        def dying(out=out, stage=stage):
            turn = {"number": 0}

            def before(call):
                def stand_in(*arguments, **keywords):
                    if (out / "checkpoints" / "step-000000002" / "manifest.json").exists():
                        if turn["number"] == stage:
                            os.kill(os.getpid(), signal.SIGKILL)
                        turn["number"] += 1
                    return call(*arguments, **keywords)

                return stand_in

            from linocut.training import tensor_file

            os.fsync, os.replace = before(os.fsync), before(os.replace)
            tensor_file._put = before(tensor_file._put)
            run(out)

        first = status_of(child(dying))
        outcomes.append((first, status_of(child(run, out))))
    return {"outcomes": outcomes}


def naive(folder, count):
    """How often a plain torch.save, killed at a random moment, leaves a file that cannot be read."""
    file, dice, torn = folder / "plain.pt", random.Random(0), 0
    tensors = {str(i): torch.zeros(100_000) for i in range(20)}

    def forever():
        while True:
            torch.save(tensors, file)

    for _ in range(count):
        pid = child(forever)
        while not file.exists():
            time.sleep(0.001)
        time.sleep(dice.uniform(0.01, 0.1))
        os.kill(pid, signal.SIGKILL)
        status_of(pid)
        try:
            torch.load(file, weights_only=True)
        except Exception:
            torn += 1
    return {"torn": torn}


def signals(folder, *numbers):
    """Send each signal to a `linocut train` in the middle of its work."""
    import linocut.data
    from linocut.cli import app
    from linocut.recipes import training as recipes

    recipes.recipe = lambda name: make_config(epochs=10_000)
    linocut.data.load = lambda *_: make_images()
    outcomes = {}
    for number in numbers:
        out = folder / f"signal-{number}"

        def verb(out=out):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                app(["train", "--out", str(out), "--json", "--device", "cpu"])
            except SystemExit as end:
                return end.code

        pid = child(verb)
        wait_for_rows(out / "log.jsonl", 8)
        os.kill(pid, number)
        outcomes[number] = {"status": status_of(pid), "rows": (out / "log.jsonl").read_bytes().count(b"\n")}
    return outcomes


def together(world, work):
    """The statuses of `world` gloo processes that do the work, each given its rank."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(world)}
    os.environ.update(place)

    def one(rank):
        os.environ["RANK"] = str(rank)
        return work(rank)

    return [status_of(pid) for pid in [child(one, rank) for rank in range(world)]]


def two_shards(out, architecture="two-layers", **keywords):
    return train(
        make_config(shards=2, architecture=architecture),
        make_images(37),
        out,
        resume=True,
        checkpoint_every=4,
        **keywords,
    )


def ranks(folder, *worlds):
    """Train with each number of gloo processes, on two shards; leave the checkpoints."""
    work = lambda rank: two_shards(folder / f"world-{os.environ['WORLD_SIZE']}").signal  # noqa: E731
    return {"statuses": [together(world, work) for world in worlds]}


def fitted_ranks(folder):
    """Two processes behind a codebook that each fits by itself, on a run that goes on after its end."""
    codebook = {"class": "FixedCodebook", "fit": {"k": 4, "r": 16}, "settings": {}}

    def work(rank):
        for _ in range(2):
            train(make_config(shards=2, epochs=1, transform=codebook), make_images(37), folder / "run", resume=True)

    return {"statuses": together(2, work)}


def signalled_rank(folder):
    """Two processes, of which the second alone gets a signal after step 9; their statuses are what ended them."""

    def work(rank):
        stop = lambda now: signal.raise_signal(signal.SIGTERM) if rank == 1 and now.step == 9 else None  # noqa: E731
        return two_shards(folder / "run", watch=stop).signal

    return {"statuses": together(2, work)}


def spoilt_rank(folder):
    """Two processes, of which the second alone meets a loss that is no number in step 10; 2 is an InputError."""

    def work(rank):
        taken, step = [], Trainer.step

        def spoilt(trainer, batch):
            taken.append(step(trainer, batch))
            return taken[-1] * (float("nan") if rank == 1 and len(taken) == 10 else 1)

        Trainer.step = spoilt
        try:
            two_shards(folder / "run")
        except InputError:
            return 2

    return {"statuses": together(2, work)}


def statistics(folder):
    """Two processes behind a BatchNorm; a status counts the steps after which their running means differed."""

    def work(rank):
        update, differing = Trainer.update, []

        def compared(trainer, *arguments, **keywords):
            outcome = update(trainer, *arguments, **keywords)
            mean = trainer.network.norm.running_mean
            both = [torch.empty_like(mean), torch.empty_like(mean)]
            torch.distributed.all_gather(both, mean, group=trainer.world.talk)
            differing.append(not torch.equal(*both))
            return outcome

        Trainer.update = compared
        two_shards(folder / "run", "with-statistics")
        return sum(differing)

    return {"statuses": together(2, work)}


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def elastic_worker(folder, kill):
    config = make_config(shards=2, epochs=6, milestones=(4,), architecture="with-statistics")
    rank, life = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])

    def watch(now):
        if kill and rank == 1 and life == 0 and now.step == 13:
            os.kill(os.getpid(), signal.SIGKILL)

    train(config, make_images(37), Path(folder), resume=True, checkpoint_every=4, watch=watch)


def elastic(folder, *choices):
    """Train under torchrun's own launcher with one restart allowed; choice 1 kills rank 1 in its first life."""
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for kill in choices:
        settings = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=2,
            run_id=f"test-{kill}",
            rdzv_backend="c10d",
            rdzv_endpoint="127.0.0.1:0",
            max_restarts=1,
            monitor_interval=0.1,
            start_method="fork",
            local_addr="127.0.0.1",
        )
        elastic_launch(settings, elastic_worker)(str(folder / f"run-{kill}"), kill)
    return {"finished": True}


if __name__ == "__main__":
    scenario, place, *numbers = sys.argv[1:]
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # no name service is needed
    with tempfile.TemporaryDirectory() as warmth:  # what torch imports at its first step, once for all children
        train(make_config(epochs=1), make_images(8), Path(warmth))
    print(json.dumps(globals()[scenario](Path(place), *map(int, numbers))))
