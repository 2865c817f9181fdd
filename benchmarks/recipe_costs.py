"""What a whole run of each recipe would cost here: python benchmarks/recipe_costs.py [--recipes mnist/baseline ...]

A few steps of every recipe are timed on smooth random pictures of its size, and the run is that times its number of
steps on the official training set. Left out: fitting a codebook (seconds), checkpoints (at most 3 % of the time), the
start of the process. A recipe that fails is recorded with its error.
"""

import argparse
import gc
import math
import time
from pathlib import Path

import torch

from linocut.data.catalogue import entry
from linocut.data.dataset import from_arrays
from linocut.recipes.training import PAPER, recipe
from linocut.training.capture import WARMUP_STEPS, CapturedStep, can_capture
from linocut.training.epochs import EpochPlan, Ownership
from linocut.training.run import make_trainer
from linocut.training.world import World
from results import write_result

SIDES = {"mnist": 28, "fashion-mnist": 28, "cifar-10": 32, "gtsrb": 32}
ROWS = ("baseline", "acab-retrained", "natural")


def pictures(count: int, channels: int, side: int, num_classes: int):
    """Smooth random images with a little noise, and random labels."""
    dice = torch.Generator().manual_seed(0)
    coarse = torch.rand(count, channels, 5, 5, generator=dice)
    smooth = torch.nn.functional.interpolate(coarse, size=side, mode="bilinear")
    noisy = smooth + 0.005 * torch.randn(smooth.shape, generator=dice)
    return from_arrays(
        pixels=noisy.clamp_(0, 1).mul_(255).round_().to(torch.uint8).numpy(),
        labels=torch.randint(0, num_classes, (count,), generator=dice).numpy(),
        classes=tuple(map(str, range(num_classes))),
        name="smooth random pictures",
        split="train",
    )


def cost(name: str, device: torch.device, timed: int) -> dict:
    """Milliseconds a step, and what they make of a whole run."""
    config = recipe(name)
    published = entry(config.data_set)
    channels = 1 if "mnist" in config.data_set else 3
    batches = 4
    images = pictures(
        batches * config.batch_size, channels, config.image_size or SIDES[config.data_set], published.num_classes
    )
    own = Ownership(num_examples=len(images.labels), shards=1)
    trainer = make_trainer(config, images, own, device, World(), Path("unused"), False)
    trainer.set_turn(0, config.learning_rate)
    if config.method == "atta":
        trainer.start_segment(own, 0)
    plan = EpochPlan(config, own, 0, trainer.canvas.image, trainer.canvas.home)
    take = CapturedStep(trainer) if can_capture(trainer) else trainer.step
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    warm = WARMUP_STEPS + 1 if can_capture(trainer) else 1
    started = time.perf_counter()
    for step in range(warm):
        take(plan.batch(step % batches))
    wait()
    warmed = time.perf_counter() - started
    started = time.perf_counter()
    for step in range(timed):
        take(plan.batch(step % batches))
    wait()
    each = (time.perf_counter() - started) / timed
    steps = config.epochs * math.ceil(published.images[0] / config.batch_size)
    return {
        "recipe": name,
        "batch_size": config.batch_size,
        "attack_steps": config.num_steps,
        "precision": config.precision,
        "first_steps_seconds": round(warmed, 2),
        "timed_steps": timed,
        "step_milliseconds": round(1e3 * each, 3),
        "steps": steps,
        "run_minutes": round(steps * each / 60, 1),
        "captured": can_capture(trainer) and take.failure is None,
    }


def cost_or_error(name: str, device: torch.device, timed: int) -> dict:
    try:
        return cost(name, device, timed)
    except Exception as error:  # whatever it is, the other recipes are worth their time
        return {"recipe": name, "error": f"{type(error).__name__}: {error}"[:500]}
    finally:
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", nargs="+", default=[f"{data_set}/{row}" for data_set in PAPER for row in ROWS])
    parser.add_argument("--timed-steps", type=int, default=5)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="folder of the record; benchmarks/results if left out")
    options = parser.parse_args()
    costs = []
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False):
        for name in options.recipes:
            costs.append(cost_or_error(name, torch.device(options.device), options.timed_steps))
            print(costs[-1], flush=True)
            folder = {"folder": options.out} if options.out else {}
            path = write_result("recipe-costs", {"images": "smooth random pictures", "costs": costs}, **folder)
    print(path)


if __name__ == "__main__":
    main()
