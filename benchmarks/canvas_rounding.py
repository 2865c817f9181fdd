"""Whether rounded perturbations cost robustness: python benchmarks/canvas_rounding.py --root DATA

Trains by the fast recipe's ATTA with each --stores of the canvas and the same --seeds, then attacks --n test images
with the paper's L-infinity PGD. Prints and writes the mean of each store, and its difference to float32 by seed.
On a GPU: --data cifar-10 --network wrn-16-4 --device cuda --epochs 6 --examples 50000 --batch-size 512
"""

import argparse
import math
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import nn

from linocut.attacks import PGD, Dice
from linocut.data import load
from linocut.data.dataset import Images, from_arrays
from linocut.evaluation.balls import balls
from linocut.models import architecture
from linocut.models import load as load_model
from linocut.recipes.training import recipe
from linocut.training import train
from results import write_result

STORES = ("float32", "half", "int8")
EVERY = 500  # images attacked at a time


class StridedNet(nn.Sequential):
    """Logits of 28x28 images: two 4x4 convolutions of stride 2 (16, 32), 100 hidden units; little enough for a CPU."""

    def __init__(self, num_classes: int, in_channels: int):
        super().__init__(
            nn.Conv2d(in_channels, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 100),
            nn.ReLU(),
            nn.Linear(100, num_classes),
        )


def first(images: Images, count: int) -> Images:
    """The first so many images, as a set of their own."""
    return from_arrays(
        pixels=images.pixels[:count].numpy(),
        labels=images.labels[:count].numpy(),
        classes=images.classes,
        name=images.name,
        split=images.split,
    )


def config_for(options: argparse.Namespace, store: str, seed: int):
    """The fast recipe without a transform, at this precision of the canvas; full precision elsewhere on a CPU."""
    on_gpu = torch.device(options.device).type == "cuda"
    usual = recipe(f"fast-{options.data}/baseline")
    return replace(
        usual,
        architecture=options.network,
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=usual.learning_rate * options.batch_size / usual.batch_size,
        precision="bfloat16" if on_gpu else "float32",
        channels_last=on_gpu,
        compile=False,
        canvas_store=store,
        seed=seed,
    )


def robust_share(model: nn.Module, images: Images, ball, device: torch.device) -> float:
    """Accuracy in per cent under the published PGD: all steps are run, the point of highest loss decides."""
    attack = PGD(num_steps=ball.num_steps, step_size=ball.step_size)
    model, broken = model.to(device).eval().requires_grad_(False), 0
    for start in range(0, len(images), EVERY):
        chosen = slice(start, min(start + EVERY, len(images)))
        x, labels = images.unit(chosen).to(device), images.labels[chosen].to(device)
        dice = Dice.of(start, len(x), device=device)
        broken += int(attack.run(model, x, labels, ball.threat, dice).broken.sum())
    return 100 * (1 - broken / len(images))


def measured(options: argparse.Namespace, store: str, seed: int, images: Images, test: Images) -> dict:
    """One training with one store and one seed, and what PGD leaves of it."""
    device = torch.device(options.device)
    ball = balls(options.data, test.pixels[0].numel(), ("linf",))["linf"]
    wall, processor = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        config = config_for(options, store, seed)
        done = train(config, images, Path(folder), test_images=test, device=device)
        robust = robust_share(load_model(Path(folder) / "model"), test, ball, device)
    return {
        "store": store,
        "seed": seed,
        "clean": round(100 * done.metrics["test_accuracy"], 2),
        "robust": round(robust, 2),
        "wall_seconds": round(time.perf_counter() - wall, 1),
        "processor_seconds": round(time.process_time() - processor, 1),
    }


def compared(runs: list[dict]) -> dict:
    """For each store the mean and the range over seeds, and the mean difference to float32 with its standard error."""
    by_store: dict[str, dict[int, dict]] = {}
    for run in runs:
        by_store.setdefault(run["store"], {})[run["seed"]] = run
    found = {}
    for store, by_seed in by_store.items():
        robust = [run["robust"] for run in by_seed.values()]
        plain = by_store.get("float32", {})
        gaps = [run["robust"] - plain[seed]["robust"] for seed, run in by_seed.items() if seed in plain]
        found[store] = {
            "clean": round(statistics.mean(run["clean"] for run in by_seed.values()), 2),
            "robust": round(statistics.mean(robust), 2),
            "range": [min(robust), max(robust)],
            "minus_float32": round(statistics.mean(gaps), 2) if gaps else None,
            "standard_error": round(statistics.stdev(gaps) / math.sqrt(len(gaps)), 2) if len(gaps) > 1 else None,
        }
    return found


def main(words: list[str] | None = None) -> dict:
    began = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="the folder that holds the data sets")
    parser.add_argument("--data", default="fashion-mnist", help="int8 is refused for an eps above 0.25")
    parser.add_argument("--network", default="strided-net")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--examples", type=int, default=12_000, help="training images, the first ones")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--n", type=int, default=1500, help="test images, the first ones")
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--stores", nargs="+", default=STORES)
    parser.add_argument("--minutes", type=float, default=math.inf, help="runs that would begin later are left")
    parser.add_argument("--out", type=Path, help="folder of the record; benchmarks/results if left out")
    options = parser.parse_args(words)
    architecture.NETWORKS.setdefault("strided-net", StridedNet)
    images = first(load(options.data, options.root, "train"), options.examples)
    test = first(load(options.data, options.root, "test"), options.n)
    shown = {key: value for key, value in vars(options).items() if key not in ("root", "out", "minutes")}
    record: dict = {"options": shown, "runs": [], "left": []}
    name = f"canvas-rounding-{options.data}"
    for seed in options.seeds:
        for store in options.stores:
            if time.perf_counter() - began > 60 * options.minutes:
                record["left"].append([store, seed])
                continue
            record["runs"].append(measured(options, store, seed, images, test))
            print(f"{time.perf_counter() - began:6.1f} s ", record["runs"][-1], flush=True)
            record["stores"] = compared(record["runs"])
            path = write_result(name, record, **({"folder": options.out} if options.out else {}))
    for store, found in record.get("stores", {}).items():
        print(store, found)
    print(f"written to {path}" if record["runs"] else "nothing was measured", f"{len(record['left'])} runs left")
    return record


if __name__ == "__main__":
    main()
