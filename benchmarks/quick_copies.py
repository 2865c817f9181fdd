"""How fast a network runs in the ways an attack may ask it: formats, layouts, compiled or not.

    python benchmarks/quick_copies.py [--network wrn-34-10] [--device cuda] [--out results]

Passes over batches of the sizes that Square and PGD see, recorded as CUDA graphs where they are small, as
`linocut evaluate` does. *look*: a forward pass, what Square asks for. *read*: forward and backward to the images, what
PGD asks for. Weights are random: the time does not depend on them.
"""

import argparse
import copy
import time
from pathlib import Path

import torch

from linocut.evaluation.quick import Compiled
from linocut.evaluation.replayed import LARGEST, Replayed
from linocut.models import build
from results import FOLDER, write_result

SIZES = (96, 352, 1024, 1664)
FORCED = {"force_layout_optimization": True}  # which the compiler leaves out where batch sizes vary
WAYS = {
    # name: (kind, format, layout, how it is compiled: None, "any size" or "each size", further options)
    "look, as it is": ("look", torch.float32, torch.contiguous_format, None, {}),
    "look, channels last": ("look", torch.float32, torch.channels_last, None, {}),
    "look, compiled": ("look", torch.float32, torch.channels_last, "any size", {}),
    "look, compiled, layout forced": ("look", torch.float32, torch.channels_last, "any size", FORCED),
    "look, float16": ("look", torch.float16, torch.channels_last, None, {}),
    "look, float16, compiled": ("look", torch.float16, torch.channels_last, "any size", {}),
    "read, as it is": ("read", torch.float32, torch.contiguous_format, None, {}),
    "read, channels last": ("read", torch.float32, torch.channels_last, None, {}),
    "read, bfloat16": ("read", torch.bfloat16, torch.channels_last, None, {}),
    "read, bfloat16, compiled as it is": ("read", torch.bfloat16, torch.contiguous_format, "any size", {}),
    "read, bfloat16, compiled": ("read", torch.bfloat16, torch.channels_last, "any size", {}),
    "read, bfloat16, compiled, layout forced": ("read", torch.bfloat16, torch.channels_last, "any size", FORCED),
    "read, bfloat16, compiled for each size": ("read", torch.bfloat16, torch.channels_last, "each size", {}),
}


def prepared(network, layout, compiled, more):
    """The network in this layout, compiled or not, its small passes recorded on a GPU."""
    torch._dynamo.reset()  # it compiles the same code only so often, then runs it as it is
    network = copy.deepcopy(network).to(memory_format=layout)
    if compiled == "any size":
        network = Compiled(network)
        if more:
            network.network = torch.compile(network.network._orig_mod, options={"shape_padding": False, **more})
    elif compiled == "each size":
        network = torch.compile(network, dynamic=False, options={"shape_padding": False, **more})
    return Replayed(network) if next(network.parameters()).is_cuda else network


def ask(network, images, kind, dtype):
    """One look or one reading."""
    with torch.autocast(images.device.type, dtype=dtype, enabled=dtype != torch.float32):
        if kind == "look":
            with torch.no_grad():
                return network(images)
        leaf = images.detach().requires_grad_()
        return torch.autograd.grad(network(leaf).float().square().sum(), leaf)[0]


def milliseconds(network, images, kind, dtype, seconds):
    """The time of one pass: the least of five runs, each of as many passes as fit."""

    def clock():
        torch.cuda.synchronize() if images.is_cuda else None
        return time.perf_counter()

    for _ in range(6):  # compiling, and the passes after which one is recorded
        begun = clock()
        ask(network, images, kind, dtype)
        once = clock() - begun
    passes = max(1, int(seconds / 5 / once))
    best = float("inf")
    for _ in range(5):
        begun = clock()
        for _ in range(passes):
            ask(network, images, kind, dtype)
        best = min(best, (clock() - begun) / passes)
    return best * 1000


def main():
    """Time every way that was asked for, print a table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="wrn-34-10")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--ways", default="", help="only those whose names begin so")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each measurement")
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()
    torch.manual_seed(0)
    network = build(options.network, 10, 3).to(options.device).eval().requires_grad_(False)
    found = {}
    for name, (kind, dtype, layout, compiled, more) in WAYS.items():
        if not name.startswith(options.ways):
            continue
        begun, ready = time.perf_counter(), prepared(network, layout, compiled, more)
        row = {}
        for size in options.sizes:
            images = torch.rand(size, 3, 32, 32, device=options.device)
            took = milliseconds(ready, images, kind, dtype, options.seconds)
            row[size] = {"milliseconds": round(took, 2), "images_per_second": round(1000 * size / took)}
        found[name] = row | {"seconds_in_all": round(time.perf_counter() - begun, 1)}
        told = "  ".join(f"{size}: {row[size]['images_per_second']:7,}/s" for size in row)
        print(f"{name:42} {told}  ({found[name]['seconds_in_all']} s)", flush=True)
    measured = {"network": options.network, "recorded_up_to": LARGEST, "ways": found}
    print(f"written to {write_result(f'quick-copies-{options.network}', measured, options.out)}")


if __name__ == "__main__":
    main()
