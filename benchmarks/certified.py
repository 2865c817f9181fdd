"""Train networks to be proven, prove them, attack them, and write the figures with date, hardware and commit.

    python benchmarks/certified.py MNIST_FOLDER --out FOLDER --minutes 8
    python benchmarks/certified.py MNIST_FOLDER --out FOLDER --minutes 4 \\
        --study fixed-mnist --study adaptive-mnist --merge benchmarks/results/certified-DATE.json

Four networks: a fixed {0, 255} and an adaptive two-colour codebook, on MNIST (radius 0.3 of the range) and on MNIST
with random contrast and brightness (colour ranges at least 64 levels wide, radius 15 levels < 64/4). The number of
epochs follows from the measured speed and --minutes, so that a run fits a slice of time; --epochs fixes it. The studies
of an earlier file that are not run again are kept, each with its own date and commit.
"""

import argparse
import gzip
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from linocut.theory.certificate import Codebook
from linocut.theory.judging import judge
from linocut.theory.limits import best_fixed
from linocut.theory.network import LARGE, SMALL, build, folded
from linocut.theory.training import IntervalTraining, train
from linocut.theory.variation import vary_contrast
from results import facts, write_result

CONTRAST = 64  # w of the contrast-varied images
SECONDS_BESIDE_TRAINING = 30  # a network on a GPU: measuring the speed, proving and attacking
MNIST_RADII = (0.0, 25.5, 51.0, 63.75, 76.5)
VARIED_RADII = (0.0, 5.0, 10.0, 15.0)
NAMES = ("fixed-mnist", "adaptive-mnist", "adaptive-varied", "fixed-varied")


@dataclass(frozen=True, kw_only=True)
class Study:
    """One network: its codebook, its images, the radius it is trained for and those it is judged at (levels)."""

    name: str
    codebook: Codebook
    share: float  # of the training time
    contrast: int | None = None
    trained_for: float = 76.5
    headline: float = 76.5
    radii: tuple[float, ...] = MNIST_RADII


def studies(best: tuple[int, int], names: Sequence[str]) -> list[Study]:
    """The networks of these names, `best` being the best fixed codebook of the contrast-varied images."""
    varied = Study(
        name="adaptive-varied",
        codebook="adaptive",
        share=0.18,
        contrast=CONTRAST,
        trained_for=16.0,
        headline=15.0,
        radii=VARIED_RADII,
    )
    known = [
        Study(name="fixed-mnist", codebook=(0, 255), share=0.32),
        Study(name="adaptive-mnist", codebook="adaptive", share=0.32),
        varied,
        replace(varied, name="fixed-varied", codebook=best, share=0.18),
    ]
    return [study for study in known if study.name in names]


def merged(entry: dict, earlier: dict) -> list[dict]:
    """All studies of an earlier result but the one measured anew, in their order, each with its own facts."""
    own = {key: earlier[key] for key in (*facts(), "size", "seed") if key in earlier}
    by_name = {old["study"]["name"]: {**own, **old} for old in earlier.get("studies", [])}
    by_name[entry["study"]["name"]] = entry
    return [by_name[name] for name in NAMES if name in by_name]


def table(entries: list[dict]) -> str:
    """One line a study: its figures at the headline radius in per cent, and where they come from."""
    lines = ["study            eps    epochs  natural  intervals  proven  attacked  measured"]
    for entry in entries:
        study, epochs = entry["study"], entry["plan"]["epochs"]
        row = next(row for row in entry["curve"] if row["eps_levels"] == study["headline"])
        lines.append(
            f"{study['name']:<16} {row['eps_levels']:<6} {epochs:>6}  {row['natural']:7.2f}  "
            f"{row['proven_by_intervals']:9.2f}  {row['proven']:6.2f}  {row['attacked']:8.2f}  "
            f"{entry['date'][:10]} {entry['commit']}"
        )
    return "\n".join(lines)


def read_idx(path: Path) -> np.ndarray:
    """The array in a gzipped IDX file of bytes."""
    raw = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(raw, ">i4", count=raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def read_mnist(folder: Path, split: str, device: torch.device) -> tuple[Tensor, Tensor]:
    """Images (N, 1, 28, 28) as uint8 and labels as int64."""
    images = torch.from_numpy(read_idx(folder / f"{split}-images-idx3-ubyte.gz").copy())[:, None]
    labels = torch.from_numpy(read_idx(folder / f"{split}-labels-idx1-ubyte.gz").copy()).long()
    return images.to(device), labels.to(device)


def in_a_hurry(yes: bool) -> None:
    """Reduced precision and tuned convolutions on a GPU: good enough to train with, not to prove with."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = yes
    torch.backends.cudnn.benchmark = yes


def seconds_per_epoch(size: tuple, images: Tensor, labels: Tensor, plan: IntervalTraining) -> float:
    """Measured on a short run of a network that is thrown away."""
    taken = min(len(images), plan.batch * (40 if images.is_cuda else 8))
    times: list[float] = []
    network = build(*size, generator=torch.Generator().manual_seed(0))
    network = network.to(images.device, memory_format=torch.channels_last)
    short = replace(plan, epochs=3, warmup=0.0, ramp=0.01)
    train(network, images[:taken], labels[:taken], short, lambda epoch, loss, seconds: times.append(seconds))
    return min(times) * len(images) / taken


def run(
    study: Study,
    train_set: tuple[Tensor, Tensor],
    test_set: tuple[Tensor, Tensor],
    seconds: float,
    options: argparse.Namespace,
) -> dict:
    """One study from an untrained network to its figures, trained for so many seconds; its weights go to --out."""
    began = time.perf_counter()
    size = LARGE if options.size == "large" else SMALL
    plan = IntervalTraining(
        eps=study.trained_for,
        codebook=study.codebook,
        epochs=max(2, options.epochs),
        ramp=0.3,
        natural_weight=options.natural_weight,
        attacked=options.attacked,
        shift=options.shift,
        contrast=study.contrast,
        seed=options.seed,
    )
    in_a_hurry(True)
    if not options.epochs:
        pace = seconds_per_epoch(size, *train_set, plan)
        left = seconds - (time.perf_counter() - began)
        plan = replace(plan, epochs=max(2, int(left / pace)))
        print(f"{study.name}: {pace:.2f} s an epoch, {plan.epochs} epochs", flush=True)
    network = build(*size, generator=torch.Generator().manual_seed(options.seed))
    network = network.to(train_set[0].device, memory_format=torch.channels_last)
    started = time.perf_counter()

    def say(epoch: int, loss: float, seconds: float) -> None:
        if epoch % max(1, plan.epochs // 8) == 0 or epoch == plan.epochs - 1:
            print(f"{study.name}: epoch {epoch + 1}/{plan.epochs}, loss {loss:.4f}, {seconds:.2f} s", flush=True)

    train(network, *train_set, plan, say)
    trained = time.perf_counter() - started
    network = folded(network)
    in_a_hurry(False)
    weights = {key: value.half().contiguous().cpu() for key, value in network.state_dict().items()}
    save_file(weights, options.out / f"{study.name}.safetensors")
    return {
        **facts(),
        **({"commit": options.commit} if options.commit else {}),
        "size": options.size,
        "seed": options.seed,
        "study": asdict(study),
        "plan": asdict(plan),
        "training_seconds": round(trained, 1),
        "curve": judged(study, network, test_set, options),
    }


def judged(
    study: Study, network: torch.nn.Sequential, test_set: tuple[Tensor, Tensor], options: argparse.Namespace
) -> list[dict]:
    """The network's figures at every radius of the study, the headline's on all images."""
    images, labels = test_set
    if study.contrast:
        images = vary_contrast(images, study.contrast, torch.Generator().manual_seed(0))
    curve = []
    for eps in sorted(study.radii, key=lambda eps: eps != study.headline):  # the headline first: time may run out
        every, boxes = (1, options.boxes) if eps == study.headline else (options.every, options.boxes // 4)
        at_once = 8192 if images.is_cuda else 1024
        found = judge(network, images[::every], labels[::every], eps, study.codebook, most_boxes=boxes, at_once=at_once)
        curve.append(asdict(found))
        print(f"{study.name}: {curve[-1]}", flush=True)
    return sorted(curve, key=lambda row: row["eps_levels"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mnist", type=Path, help="folder with the four gzipped MNIST files")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--study", action="append", choices=NAMES, help="may be repeated; all four without it")
    parser.add_argument("--merge", type=Path, help="an earlier result, whose other studies are kept")
    parser.add_argument("--minutes", type=float, default=8.0, help="for all studies together, on a GPU")
    parser.add_argument("--epochs", type=int, default=0, help="of every study, instead of --minutes")
    parser.add_argument("--size", choices=["large", "small"], default="large")
    parser.add_argument("--images", type=int, default=10_000, help="test images at the headline radius")
    parser.add_argument("--every", type=int, default=10, help="at the other radii, judge every so manyth of them")
    parser.add_argument(
        "--boxes", type=int, default=1_000, help="most boxes an image in branching; a quarter at the other radii"
    )
    parser.add_argument("--natural-weight", type=float, default=0.5, help="of the loss on single images at the end")
    parser.add_argument("--attacked", type=float, default=1.0, help="share of those images that is attacked first")
    parser.add_argument("--shift", type=int, default=0, help="pixels by which training images move at random")
    parser.add_argument("--commit", help="to record where the tree travels without its repository")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    deadline = time.perf_counter() + 60 * options.minutes
    options.out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set = read_mnist(options.mnist, "train", device)
    images, labels = read_mnist(options.mnist, "t10k", device)
    test_set = images[: options.images], labels[: options.images]
    result: dict = json.loads(options.merge.read_text()) if options.merge else {}
    names = options.study or NAMES
    best = result.get("best_fixed_on_varied")
    if best is None or any(name.endswith("varied") for name in names):
        varied = vary_contrast(test_set[0], CONTRAST, torch.Generator().manual_seed(0))
        found = best_fixed(varied.cpu(), test_set[1].cpu(), 15.0)
        best = {"codebook": list(found.codebook), "ceiling_percent": round(100 * found.ceiling, 3)}
    left = studies(tuple(best["codebook"]), names)
    while left:
        seconds = deadline - time.perf_counter() - SECONDS_BESIDE_TRAINING * len(left)
        seconds *= left[0].share / sum(study.share for study in left)
        entry = run(left.pop(0), train_set, test_set, seconds, options)
        result = {
            **{key: entry[key] for key in (*facts(), "size", "seed")},
            "best_fixed_on_varied": best,
            "studies": merged(entry, result),
        }
        print(f"wrote {write_result('certified', result, options.out)}", flush=True)
    print(table(result["studies"]))


if __name__ == "__main__":
    main()
