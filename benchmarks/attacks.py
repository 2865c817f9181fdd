"""Our attacks beside Foolbox, ART and AutoAttack (pyautoattack): how strong, and how fast, in one run.

    LINOCUT_DATA=... python benchmarks/attacks.py [--device cuda] [--count 1000] [--queries 100] [--model FOLDER]

A small CNN is trained on CIFAR-10 (about a minute on one core) and the first test images it gets right are
attacked by every library with the same radius, steps and budget; --model names a saved adversarially trained
network in its place. References get the batch size at which the network is fastest in their layout. On a GPU, or
with --model, ours also run on a quick copy of the network (bfloat16, on a GPU compiled), every find of which the
network itself must confirm; making the copy is timed apart. A library that is not installed is left out, and said so.
"""

import argparse
import copy
import datetime
import functools
import json
import os
import platform
import subprocess
import time
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from linocut.attacks import APGD, PGD, Dice, Square, ThreatModel
from linocut.evaluation.quick import searcher
from linocut.evaluation.request import take_quick_layout
from linocut.models import load
from references import (
    APGD_STEPS,
    PGD_STEPS,
    art_pgd,
    art_square,
    auto_apgd,
    auto_square,
    foolbox_pgd,
    version,
)

# Radii at which the attacks leave a third to a half standing: at 0 or 100 % everyone agrees.
LINF, L2 = ThreatModel("linf", 3 / 255), ThreatModel("l2", 0.4)
SQUARE_LINF, SQUARE_L2 = ThreatModel("linf", 8 / 255), ThreatModel("l2", 2.0)
TRAINED_LINF, TRAINED_L2 = ThreatModel("linf", 8 / 255), ThreatModel("l2", 1.0)  # for an adversarially trained model
WIDTH = 8


def cifar(name):
    """Images in the unit range and labels of one of the binary files."""
    raw = np.fromfile(Path(os.environ["LINOCUT_DATA"]) / "cifar-10-batches-bin" / name, dtype=np.uint8)
    rows = torch.from_numpy(raw.reshape(-1, 3073))
    return rows[:, 1:].reshape(-1, 3, 32, 32).float() / 255, rows[:, 0].long()


def network():
    """An ordinary CNN without any defence."""
    return nn.Sequential(
        nn.Conv2d(3, WIDTH, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(WIDTH, 2 * WIDTH, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(2 * WIDTH, 4 * WIDTH, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * WIDTH, 10),
    )


def trained(device, epochs=3):
    """The network after a few epochs of Adam, in eval mode."""
    torch.manual_seed(0)
    model = network().to(device, memory_format=torch.channels_last)
    parts = [cifar(f"data_batch_{i}.bin") for i in range(1, 6)]
    images, labels = (torch.cat(column).to(device) for column in zip(*parts, strict=True))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * (len(images) // 128))
    for _ in range(epochs):
        order = torch.randperm(len(images), device=device)
        for rows in order[: len(order) // 128 * 128].split(128):
            optimizer.zero_grad()
            F.cross_entropy(model(images[rows].to(memory_format=torch.channels_last)), labels[rows]).backward()
            optimizer.step()
            schedule.step()
    return model.to(memory_format=torch.contiguous_format).eval()


def bare(model):
    """The network without its transform."""
    return model if model.transform is None else model.undefended()


def predictions(model, images):
    """What the model says, in batches."""
    with torch.no_grad():
        return torch.cat([model(part).argmax(1) for part in images.split(250)])


def fastest_batch(model, images):
    """The batch size, of three, at which a forward and backward pass costs least per image."""

    def cost(size):
        begun = clock()
        for part in images.split(size):
            leaf = part.clone().requires_grad_()
            torch.autograd.grad(model(leaf).sum(), leaf)
        torch.cuda.synchronize() if images.is_cuda else None
        return clock() - begun

    # On a CPU the time of this process alone, so that what else the machine does has no vote.
    clock = time.perf_counter if images.is_cuda else time.process_time
    return min((64, 250, 1000), key=lambda size: min(cost(size) for _ in range(4)))


def ours(attack, model, images, labels, threat, searched=None):
    """The points of one of our attacks, found on the model or on a copy of it."""
    dice = Dice.of(torch.initial_seed(), len(images), images.device)
    return attack.run(searched or model, images, labels, threat, dice).images


def quick_copy(model, images, labels):
    """The copy and the seconds it took to compile and record, forward alone and with a gradient."""
    began = time.perf_counter()
    model = copy.deepcopy(model)
    take_quick_layout(model, images[:32])
    quick = searcher(model, half=True, compiled=images.is_cuda, probe=images[:32])
    if images.is_cuda:
        for attack in (PGD(num_steps=8), Square(num_queries=8)):  # some passes are recorded when they come again
            ours(attack, model, images, labels, LINF, quick)
        torch.cuda.synchronize()
    return quick, time.perf_counter() - began


def contests(batch, queries, radii):
    """What is compared: title, threat model, ours as (name, attack), references as (package, function).

    The slower references meet L-inf alone: the whole has to fit into some minutes of one core.
    """
    for threat in radii[:2]:
        pgd = [
            ("ours, as published", PGD(num_steps=PGD_STEPS)),
            ("ours, any iterate", PGD(num_steps=PGD_STEPS, any_iterate=True)),
        ]
        references = [("foolbox", foolbox_pgd), ("art", art_pgd)]
        bound = [(n, functools.partial(f, batch=batch)) for n, f in references]
        yield f"PGD-{PGD_STEPS}", threat, pgd, bound if threat.norm == "linf" else bound[:1]
        if threat.norm == "l2":
            continue
        apgd = [("ours, any iterate", APGD(num_steps=APGD_STEPS))]
        yield (
            f"APGD-CE-{APGD_STEPS}",
            threat,
            apgd,
            [("pyautoattack", functools.partial(auto_apgd, batch=batch))],
        )
    for threat in radii[2:]:
        square = [("ours", Square(num_queries=queries))]
        references = [("pyautoattack", auto_square)]
        if threat.norm == "linf":
            references.append(("art", art_square))
        bound = [(n, functools.partial(f, batch=batch, queries=queries)) for n, f in references]
        yield f"Square-{queries}", threat, square, bound


def over_seeds(call, model, images, labels, threat, seeds):
    """The mean of `measured` over so many seeds, with the accuracy of each: a random search is luck with one."""
    runs = [measured(call, model, images, labels, threat, seed) for seed in range(seeds)]
    mean = {name: round(float(np.mean([run[name] for run in runs])), 2) for name in runs[0]}
    return mean | {"standing_by_seed": [run["standing"] for run in runs]}


def measured(call, model, images, labels, threat, seed):
    """Robust accuracy in percent and seconds: of the wall, and of this process."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    wall, cpu = time.perf_counter(), time.process_time()
    found = call(model, images, labels, threat)
    if images.is_cuda:
        torch.cuda.synchronize()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert threat.contains(found, images, slack=1e-4).all(), "outside the ball"
    standing = (predictions(model, found) == labels).float().mean().item() * 100
    return {"standing": round(standing, 1), "wall_s": round(wall, 2), "cpu_s": round(cpu, 2)}


def hardware(device):
    """The machine in words."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    return f"{model}, {torch.get_num_threads()} thread(s)"


def main():
    """Train, attack, print a table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=5, help="of the random searches")
    parser.add_argument("--contest", default="", help="only those whose title begins so: PGD, APGD, Square")
    parser.add_argument("--references", nargs="+", default=("foolbox", "art", "pyautoattack"))
    parser.add_argument("--model", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of the references

    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent)
    model, radii = (
        (trained(options.device), (LINF, L2, SQUARE_LINF, SQUARE_L2))
        if options.model is None
        else (
            bare(load(options.model)).to(options.device),
            (TRAINED_LINF, TRAINED_L2, TRAINED_LINF, SQUARE_L2),
        )
    )
    model.requires_grad_(False)
    images, labels = (tensor.to(options.device) for tensor in cifar("test_batch.bin"))
    right = predictions(model, images) == labels
    print(f"clean accuracy {right.float().mean():.1%}")
    rows = right.nonzero().squeeze(1)[: options.count]
    images, labels = images[rows].clone(), labels[rows].clone()
    batch = fastest_batch(model, images)
    results, quick, compiling = [], None, None
    if options.device == "cuda" or options.model is not None:
        quick, compiling = quick_copy(model, images, labels)
        print(f"quick copy made in {compiling:.1f} s")
    for title, threat, attacks, references in contests(batch, options.queries, radii):
        if not title.startswith(options.contest):
            continue
        print(f"\n{title} {threat.norm} eps {threat.eps:.4g}, n {len(images)}, references in batches of {batch}")
        calls = [(name, functools.partial(ours, attack)) for name, attack in attacks]
        if quick is not None:
            calls += [(f"{name}, quick", functools.partial(ours, attack, searched=quick)) for name, attack in attacks]
        for name, call in calls + references:
            if call.func is not ours and (version(name) is None or name not in options.references):
                print(f"  {name:20} not installed, or not asked for")
                continue
            seeds = options.seeds if title.startswith("Square") else 1
            row = over_seeds(call, model, images, labels, threat, seeds)
            results.append({"contest": title, "norm": threat.norm, "eps": threat.eps, "who": name, **row})
            mine = [r for r in results if r["contest"] == title and r["norm"] == threat.norm and "ours" in r["who"]]
            seconds = "wall_s" if images.is_cuda else "cpu_s"
            ratios = ", ".join(f"{row[seconds] / r[seconds]:.1f} x {r['who']}" for r in mine if "ours" not in name)
            print(f"  {name:20} {row['standing']:5.1f} % standing {row['wall_s']:7.1f} s  {ratios}")

    now = datetime.datetime.now(datetime.UTC)
    report = {
        "date": now.isoformat(timespec="seconds"),
        "hardware": hardware(options.device),
        "commit": commit.stdout.strip(),
        "torch": torch.__version__,
        "references": {name: version(name) for name in ("foolbox", "art", "pyautoattack")},
        "clean_accuracy": round(right.float().mean().item() * 100, 1),
        "count": len(images),
        "model": "a small CNN" if options.model is None else str(options.model),
        "seconds_to_make_the_copy": compiling and round(compiling, 1),
        "reference_batch": batch,
        "results": results,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"attacks-{now:%Y-%m-%d}{'' if options.device == 'cpu' else '-' + options.device}.json"
    path.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\nwritten to {path}")


if __name__ == "__main__":
    main()
