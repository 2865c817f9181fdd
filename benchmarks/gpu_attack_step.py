"""What the transform adds to an attack step on a GPU: `python benchmarks/gpu_attack_step.py [--out FOLDER]`.

A step is the forward pass and the gradient at the images, batch 128, 32x32x3, the network in bfloat16, channels last
and compiled. Three ways: no transform; the transform run as it is, before the compiled network; both compiled as one.
Each as plain calls, where a small network waits for the processor to launch its kernels, and replayed from a CUDA
graph, where it does not. Timed by device events, the ways in turn, so that a drift of the clock meets all of them.
"""

import argparse
import importlib.util
import os
import statistics
import time
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from torch import nn

from gpu_transform import crops
from linocut.transform.modules import EssentialFeatures
from results import write_result

BATCH = 128
NETWORKS = ("preact-resnet-18", "wrn-34-10")


class InBfloat16(nn.Module):
    """A network that computes in bfloat16, channels last, for float32 images and logits."""

    def __init__(self, network):
        super().__init__()
        self.network = network.to(device="cuda", dtype=torch.bfloat16, memory_format=torch.channels_last)

    def forward(self, images):
        """Logits float32 of images float32."""
        return self.network(images.to(torch.bfloat16, memory_format=torch.channels_last)).float()


def step(model, images, labels):
    """The gradient of the loss at the images."""
    images = images.detach().requires_grad_()
    loss = nn.functional.cross_entropy(model(images), labels, reduction="sum")
    return torch.autograd.grad(loss, images)[0]


def replayed(model, images, labels):
    """A function like `step` of this model, which replays one CUDA graph."""
    held = images.clone()
    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        for _ in range(3):
            step(model, held, labels)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=aside):
        gradient = step(model, held, labels)

    def replay(images):
        held.copy_(images)
        graph.replay()
        return gradient

    return replay


def median_in_turn(ways, images, repeats=60):
    """Median milliseconds of each way by name, the ways in turn."""
    times = {name: [] for name in ways}
    for i in range(repeats + 10):
        if i == 10:
            torch.cuda._sleep(50_000_000)  # lets the processor get ahead of replays
        for name, way in ways.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            way(images[i % len(images)])
            end.record()
            times[name].append((start, end))
    torch.cuda.synchronize()
    return {
        name: statistics.median(start.elapsed_time(end) for start, end in pairs[10:]) for name, pairs in times.items()
    }


def measure(name, images, labels):
    """Milliseconds and percent added for one network."""
    from linocut.models import Defended, build

    network = InBfloat16(build(name).eval().requires_grad_(False))
    transform = EssentialFeatures.preset("cifar-10")
    began = time.perf_counter()
    compiled = torch.compile(network, fullgraph=True)
    models = {
        "no transform": compiled,
        "transform before it": Defended(transform, compiled).eval(),
        "compiled as one": torch.compile(Defended(transform, network).eval(), fullgraph=True),
    }
    ways = {name: partial(step, model, labels=labels) for name, model in models.items()}
    ways |= {f"{name}, graph": replayed(model, images[0], labels) for name, model in models.items()}
    gradients = {name: way(images[0]).clone() for name, way in ways.items()}
    torch.cuda.synchronize()
    record = {"seconds to compile": time.perf_counter() - began}
    if not all(torch.isfinite(gradient).all() for gradient in gradients.values()):
        raise RuntimeError("a gradient is not finite")
    defended = [gradient.flatten() for name, gradient in gradients.items() if "no transform" not in name]
    record["least cosine between gradients"] = min(
        nn.functional.cosine_similarity(one, other, 0).item() for one, other in combinations(defended, 2)
    )
    # Plain calls and replays apart: while the device works off queued replays, the processor gets ahead, and plain
    # calls that come after them look quicker than they are.
    took = median_in_turn({name: way for name, way in ways.items() if not name.endswith("graph")}, images)
    took |= median_in_turn({name: way for name, way in ways.items() if name.endswith("graph")}, images)
    record["milliseconds"] = took
    record["percent added"] = {
        name: 100 * (ms / took["no transform, graph" if name.endswith("graph") else "no transform"] - 1)
        for name, ms in took.items()
    }
    print(name, record, flush=True)
    return record


def main(folder):
    """Measure every network and write the result."""
    if importlib.util.find_spec("linocut.models") is None:
        print("linocut.models is not there: nothing to measure")
        return
    dice = np.random.default_rng(0)
    images = [crops(BATCH, 32, dice) for _ in range(4)]
    labels = torch.from_numpy(dice.integers(0, 10, BATCH)).cuda()
    measured = {name: measure(name, images, labels) for name in NETWORKS}
    write_result("gpu_attack_step", {"batch": BATCH, "networks": measured}, folder)
    print(f"{'network':20}{'way':30}{'ms':>10}{'% added':>10}")
    for name, record in measured.items():
        for way, ms in record["milliseconds"].items():
            print(f"{name:20}{way:30}{ms:10.4f}{record['percent added'][way]:10.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "out/benchmarks")))
    main(parser.parse_args().out)
