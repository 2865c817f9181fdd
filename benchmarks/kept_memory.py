"""What it gains on a CPU that the command line keeps freed memory: gradients and training steps a second, both ways.

    python benchmarks/kept_memory.py --write

Each measurement is a process of its own, since what glibc was told cannot be taken back; both ways take turns.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import torch

from linocut.cli.memory import keep_freed_memory
from linocut.models import build
from results import write_result

CASES = [
    ("madry-net", 1, 28, 100),
    ("madry-net", 1, 28, 500),
    ("madry-net", 1, 28, 2000),
    ("wrn-16-4", 3, 32, 50),
    ("wrn-16-4", 3, 32, 100),
    ("wrn-16-4", 3, 32, 500),
]
SECONDS, TURNS = 2.0, 3


def rate(step, batch: int) -> float:
    """Images a second."""
    step()
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        step()
        done += batch
    return done / (time.perf_counter() - start)


def measured(architecture: str, channels: int, side: int, batch: int) -> dict[str, float]:
    """Input gradients and training steps a second in this process, and the most memory it held."""
    torch.set_num_threads(1)
    images, labels = torch.rand(batch, channels, side, side), torch.arange(batch) % 10
    network = build(architecture, 10, channels)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)

    def attack() -> None:
        moved = images.clone().requires_grad_(True)
        torch.autograd.grad(torch.nn.functional.cross_entropy(network(moved), labels), moved)

    def train() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()

    training = rate(train, batch)
    network.eval().requires_grad_(False)
    gradients = rate(attack, batch)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"gradients a second": gradients, "training images a second": training, "most memory, MB": megabytes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write a result file")
    parser.add_argument("--one", nargs=2, metavar=("WAY", "CASE"), help="one measurement, as JSON")
    options = parser.parse_args()
    if options.one:
        if options.one[0] == "kept":
            keep_freed_memory()
        print(json.dumps(measured(*CASES[int(options.one[1])])))
        return
    found = []
    for number, (architecture, _, _, batch) in enumerate(CASES):
        runs: dict[str, list[dict[str, float]]] = {"kept": [], "handed back": []}
        for _ in range(TURNS):
            for way, held in runs.items():
                words = [sys.executable, __file__, "--one", way, str(number)]
                held.append(json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout))
        middle = {
            way: {name: round(statistics.median(run[name] for run in held), 1) for name in held[0]}
            for way, held in runs.items()
        }
        ratios = {name: round(value / middle["handed back"][name], 2) for name, value in middle["kept"].items()}
        print(f"{architecture}, batch {batch}: {ratios}")
        found.append({"network": architecture, "batch": batch, **middle, "ratio": ratios})
    if options.write:
        write_result("kept-memory", {"threads": 1, "seconds a measurement": SECONDS, "turns": TURNS, "cases": found})


if __name__ == "__main__":
    main()
