"""Seconds per epoch and memory of ATTA on CIFAR-10 with WRN-34-10, with and without AC+AB.

    python benchmarks/training.py [--data ROOT] [--cases 128:1:none 128:1:acab 512:1:none 512:1:acab 512:7:none]

A case is BATCH:STEPS:TRANSFORM. By default part of an epoch is timed (--timed-steps) and the epoch is that,
scaled to all of its steps, plus the drawing of the epoch's plan, which is timed as well; the record says which
part was measured. --timed-steps 0 times whole epochs. The start of a segment (every tenth epoch) is recorded
apart, and checkpoints are left out. Without --data the images are smooth random pictures, and the record says
so: the network does not care, and the transform finds 27 colours from 156 bins in them, against 26 from 132 in
CIFAR-10's test images (means over 300), so AC+AB is timed a little too slow rather than too fast.

Cases that follow each other with the same batch share one network, compiled once: name them in that order.
A case that fails is recorded with its error, and the others go on; the exit status is then 1. The record is
written after every case. --budget-seconds skips the cases that would begin later than that.
"""

import argparse
import gc
import math
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from linocut.data.dataset import from_arrays
from linocut.models.store import rebuild_transform
from linocut.training.capture import WARMUP_STEPS, CapturedStep, can_capture
from linocut.training.config import TrainingConfig
from linocut.training.epochs import EpochPlan, Ownership, steps_per_epoch
from linocut.training.gauge import Gauge
from linocut.training.run import make_trainer
from linocut.training.world import World
from results import write_result

CASES = ("128:1:none", "128:1:acab", "512:1:none", "512:1:acab", "512:7:none", "128:7:none", "512:7:acab")
GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One case. epoch_seconds is measured if timed_steps equals steps_per_epoch, else extrapolated from them."""

    case: str
    batch_size: int
    attack_steps: int
    transform: str
    compiled: bool
    captured: bool
    timed_steps: int
    steps_per_epoch: int
    step_milliseconds: float
    plan_seconds: float
    epoch_seconds: float
    extrapolated: bool
    images_per_second: float
    segment_start_seconds: float
    first_steps_seconds: float
    peak_allocated_gib: float | None
    peak_reserved_gib: float | None
    last_loss: float
    note: str


def images_for(arguments):
    """CIFAR-10 where its folder is given, else smooth random pictures."""
    if arguments.data is not None:
        from linocut.data import load

        return load("cifar-10", arguments.data, "train")
    generator = torch.Generator().manual_seed(0)
    count, side = arguments.examples, arguments.side
    pixels = torch.empty(count, 3, side, side, dtype=torch.uint8)
    for block in pixels.split(5000):  # in float32 all at once would take gigabytes
        grey = torch.rand(len(block), 1, 4, 4, generator=generator)
        tint = (torch.rand(len(block), 3, 4, 4, generator=generator) - 0.5) / 4
        smooth = torch.nn.functional.interpolate(grey + tint, size=side, mode="bilinear")
        noise = torch.randn(smooth.shape, generator=generator)
        block.copy_((smooth + 0.005 * noise).clamp_(0, 1).mul_(255).round_())
    return from_arrays(
        pixels=pixels.numpy(),
        labels=torch.randint(0, 10, (count,), generator=generator).numpy(),
        classes=tuple("0123456789"),
        name="smooth random pictures",
        split="train",
    )


def config_for(arguments, batch_size, attack_steps, transform):
    """ATTA on CIFAR-10 as the fast recipes run it: bfloat16, channels_last, perturbations in eight bits."""
    described = None
    if transform not in ("none", "acab"):
        raise ValueError(f"a transform is none or acab, got {transform!r}")
    if transform == "acab":
        from linocut.transform.modules import EssentialFeatures

        described = {"class": "EssentialFeatures", "settings": EssentialFeatures.preset("cifar-10").settings()}
    return TrainingConfig(
        recipe="benchmark",
        data_set="cifar-10",
        architecture=arguments.architecture,
        num_steps=attack_steps,
        step_size=0.015 if attack_steps == 1 else 2 / 255,
        pad=4,
        flip=True,
        transform=described,
        batch_size=batch_size,
        learning_rate=0.1 / 64,
        precision="bfloat16",
        channels_last=True,
        compile=arguments.compile,
        canvas_store="int8",
    )


class Bench:
    """A trainer for one batch size, kept from case to case for its compiled network."""

    def __init__(self, arguments, images):
        self.arguments, self.images = arguments, images
        self.device = torch.device(arguments.device)
        self.own = Ownership(num_examples=len(images.labels), shards=1)
        self.trainer = None

    def trainer_for(self, config):
        """A trainer that takes steps by this config; a new one where the batch is another."""
        if self.trainer is None or self.trainer.config.batch_size != config.batch_size:
            self.drop()
            bare = replace(config, transform=None)
            self.trainer = make_trainer(bare, self.images, self.own, self.device, World(), Path("unused"), False)
        transform = None
        if config.transform is not None:
            settings = {**config.transform["settings"], "validate": False}
            transform = rebuild_transform(config.transform["class"], settings, source="benchmark").to(self.device)
        self.trainer.config = config
        self.trainer.attacked.transform = self.trainer.updated.transform = transform
        return self.trainer

    def tidy(self):
        """Give back what the last case left on the GPU but the trainer: its graph and its gradients."""
        if self.trainer is not None:
            self.trainer.optimizer.zero_grad(set_to_none=True)
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def drop(self):
        """Forget the trainer and what was compiled for it."""
        self.trainer = None
        self.tidy()
        torch.compiler.reset()


def time_case(bench, case):
    """The timing of one case."""
    arguments, images, own, device = bench.arguments, bench.images, bench.own, bench.device
    batch_size, attack_steps, transform = case.split(":")
    config = config_for(arguments, int(batch_size), int(attack_steps), transform)
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    bench.tidy()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    trainer = bench.trainer_for(config)
    trainer.set_turn(0, config.learning_rate)
    started = time.perf_counter()
    trainer.start_segment(own, 0)
    wait()
    segment_start = time.perf_counter() - started

    started = time.perf_counter()
    plan = EpochPlan(config, own, 0, trainer.canvas.image, trainer.canvas.home)
    wait()
    plan_seconds = time.perf_counter() - started

    capture = arguments.capture and can_capture(trainer)
    take, gauge = CapturedStep(trainer) if capture else trainer.step, Gauge(device)
    total = steps_per_epoch(config, len(images.labels))
    full = len(images.labels) // config.batch_size  # the last, smaller batch would be timed as if it were full
    started = time.perf_counter()
    for step in range(WARMUP_STEPS + 2):  # compiles, tunes and captures
        gauge.give(take(plan.batch(step % full)))
    wait()
    first_steps = time.perf_counter() - started

    whole = arguments.timed_steps == 0
    timed = total if whole else arguments.timed_steps
    if whole:
        take(plan.batch(total - 1))  # the last batch has a size of its own, and its first time must not count
        wait()
    started = time.perf_counter()
    for step in range(timed):
        gauge.give(take(plan.batch(step if whole else step % full)))
    wait()
    seconds = time.perf_counter() - started
    outcome = gauge.rest() or take(plan.batch(0)).tolist()
    epoch = seconds / timed * (total if whole else len(images.labels) / config.batch_size) + plan_seconds
    on_gpu = device.type == "cuda"
    loss = outcome[0] / max(1.0, outcome[2])
    notes = [(capture and take.failure) or "", "" if math.isfinite(loss) else "the last loss is no number"]
    return Timing(
        case=case,
        batch_size=config.batch_size,
        attack_steps=config.num_steps,
        transform=transform,
        compiled=config.compile,
        captured=capture and take.failure is None,
        timed_steps=timed,
        steps_per_epoch=total,
        step_milliseconds=1e3 * seconds / timed,
        plan_seconds=plan_seconds,
        epoch_seconds=epoch,
        extrapolated=not whole,
        images_per_second=len(images.labels) / epoch,
        segment_start_seconds=segment_start,
        first_steps_seconds=first_steps,
        peak_allocated_gib=torch.cuda.max_memory_allocated() / GIB if on_gpu else None,
        peak_reserved_gib=torch.cuda.max_memory_reserved() / GIB if on_gpu else None,
        last_loss=loss,
        note="; ".join(filter(None, notes)),
    )


def time_or_error(bench, case):
    """The timing as a dictionary; where the case fails, its name and its error."""
    try:
        return asdict(time_case(bench, case))
    except Exception as error:  # whatever it is, the other cases are worth their time
        bench.drop()
        return {"case": case, "error": f"{type(error).__name__}: {error}"[:1000]}


def table(cases):
    """The cases as aligned lines: the numbers one looks at first."""
    rows = [("case", "ms/step", "s/epoch", "images/s", "GiB", "first steps s", "note")]
    for case in cases:
        if "error" in case:
            rows.append((case["case"], "-", "-", "-", "-", "-", case["error"].splitlines()[0][:80]))
            continue
        memory = "-" if case["peak_reserved_gib"] is None else f"{case['peak_reserved_gib']:.1f}"
        numbers = (f"{case['step_milliseconds']:.1f}", f"{case['epoch_seconds']:.1f}")
        rate, first = f"{case['images_per_second']:.0f}", f"{case['first_steps_seconds']:.1f}"
        plain = "" if case["captured"] else "no graph"
        rows.append((case["case"], *numbers, rate, memory, first, (case["note"] or plain)[:80]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)) for row in rows)


def main(words=None):
    began = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--timed-steps", type=int, default=60)
    parser.add_argument("--budget-seconds", type=float, default=math.inf, help="cases that would begin later are left")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--architecture", default="wrn-34-10")
    parser.add_argument("--examples", type=int, default=50_000)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--capture", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--out", type=Path, help="folder of the record; benchmarks/results if left out")
    arguments = parser.parse_args(words)
    images = images_for(arguments)
    record = {
        "architecture": arguments.architecture,
        "images": f"{len(images.labels)} of {images.name}" + ("" if arguments.data else ", no data set"),
        "cases": [],
        "skipped": [],
    }
    bench = Bench(arguments, images)
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False):
        for case in arguments.cases:
            started = time.perf_counter() - began
            if started > arguments.budget_seconds:
                record["skipped"].append(case)
                print(f"{case} skipped: {started:.0f} s are over the budget", flush=True)
            else:
                record["cases"].append(time_or_error(bench, case))
                took = time.perf_counter() - began - started
                print(f"{case} took {took:.0f} s: {record['cases'][-1].get('error', 'measured')}", flush=True)
            path = write_result("training", record, **({"folder": arguments.out} if arguments.out else {}))
    print(f"wrote {path}")
    print(table(record["cases"]))
    return record


if __name__ == "__main__":
    sys.exit(any("error" in case for case in main()["cases"]))
