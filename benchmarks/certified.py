"""Train networks to be proven, prove them, attack them, and write the figures with date, hardware and commit.

    python benchmarks/certified.py MNIST_FOLDER --out FOLDER --minutes 4

Four networks: a fixed {0, 255} and an adaptive two-colour codebook, on MNIST (radius 0.3 of the range) and on MNIST
with random contrast and brightness (colour ranges at least 64 levels wide, radius 15 levels < 64/4). The number of
epochs follows from the measured speed and --minutes, so that a run fits a slice of time; --epochs fixes it.
"""

import argparse
import gzip
import time
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
from results import write_result

CONTRAST = 64  # w of the contrast-varied images
SHARE_OF_TRAINING = 0.6  # of the time; the rest is for proving and attacking
MNIST_RADII = (0.0, 25.5, 51.0, 63.75, 76.5)
VARIED_RADII = (0.0, 5.0, 10.0, 15.0)


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


def studies(best: tuple[int, int]) -> list[Study]:
    """The four networks, `best` being the best fixed codebook of the contrast-varied images."""
    varied = Study(
        name="adaptive-varied",
        codebook="adaptive",
        share=0.18,
        contrast=CONTRAST,
        trained_for=16.0,
        headline=15.0,
        radii=VARIED_RADII,
    )
    return [
        Study(name="fixed-mnist", codebook=(0, 255), share=0.32),
        Study(name="adaptive-mnist", codebook="adaptive", share=0.32),
        varied,
        replace(varied, name="fixed-varied", codebook=best, share=0.18),
    ]


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


def run(study: Study, train_set: tuple[Tensor, Tensor], test_set: tuple[Tensor, Tensor], options: argparse.Namespace):
    """One study from an untrained network to its figures; its weights are written beside them."""
    size = LARGE if options.size == "large" else SMALL
    plan = IntervalTraining(
        eps=study.trained_for,
        codebook=study.codebook,
        epochs=1,
        natural_weight=options.natural_weight,
        contrast=study.contrast,
        seed=options.seed,
    )
    in_a_hurry(True)
    if options.epochs:
        epochs = max(2, round(options.epochs * study.share / 0.32))
    else:
        pace = seconds_per_epoch(size, *train_set, plan)
        epochs = max(2, int(60 * options.minutes * SHARE_OF_TRAINING * study.share / pace))
    plan = replace(plan, epochs=epochs)
    network = build(*size, generator=torch.Generator().manual_seed(options.seed))
    network = network.to(train_set[0].device, memory_format=torch.channels_last)
    started = time.perf_counter()

    def say(epoch: int, loss: float, seconds: float) -> None:
        if epoch % max(1, epochs // 8) == 0 or epoch == epochs - 1:
            print(f"{study.name}: epoch {epoch + 1}/{epochs}, loss {loss:.4f}, {seconds:.2f} s", flush=True)

    train(network, *train_set, plan, say)
    trained = time.perf_counter() - started
    network = folded(network)
    in_a_hurry(False)
    weights = {key: value.half().contiguous().cpu() for key, value in network.state_dict().items()}
    save_file(weights, options.out / f"{study.name}.safetensors")
    images, labels = test_set
    if study.contrast:
        images = vary_contrast(images, study.contrast, torch.Generator().manual_seed(0))
    curve = []
    for eps in sorted(study.radii, key=lambda eps: eps != study.headline):  # the headline first: time may run out
        every, boxes = (1, options.boxes) if eps == study.headline else (options.every, options.boxes // 4)
        at_once = 8192 if images.is_cuda else 1024
        judged = judge(
            network, images[::every], labels[::every], eps, study.codebook, most_boxes=boxes, at_once=at_once
        )
        curve.append(asdict(judged))
        print(f"{study.name}: {curve[-1]}", flush=True)
    curve.sort(key=lambda row: row["eps_levels"])
    return {"study": asdict(study), "plan": asdict(plan), "training_seconds": round(trained, 1), "curve": curve}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mnist", type=Path, help="folder with the four gzipped MNIST files")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=4.0, help="for all studies together")
    parser.add_argument("--epochs", type=int, default=0, help="of the longest study, instead of --minutes")
    parser.add_argument("--size", choices=["large", "small"], default="large")
    parser.add_argument("--only", nargs="*", default=[], help="names of studies")
    parser.add_argument("--images", type=int, default=10_000, help="test images at the headline radius")
    parser.add_argument("--every", type=int, default=10, help="at the other radii, judge every so manyth of them")
    parser.add_argument(
        "--boxes", type=int, default=1_000, help="most boxes an image in branching; a quarter at the other radii"
    )
    parser.add_argument("--natural-weight", type=float, default=0.25, help="of the natural loss at the end")
    parser.add_argument("--commit", help="to record where the tree travels without its repository")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set = read_mnist(options.mnist, "train", device)
    images, labels = read_mnist(options.mnist, "t10k", device)
    test_set = images[: options.images], labels[: options.images]
    varied = vary_contrast(test_set[0], CONTRAST, torch.Generator().manual_seed(0))
    best = best_fixed(varied.cpu(), test_set[1].cpu(), 15.0)
    measured: dict = {
        "size": options.size,
        "seed": options.seed,
        "best_fixed_on_varied": {"codebook": best.codebook, "ceiling_percent": round(100 * best.ceiling, 3)},
        "studies": [],
    }
    if options.commit:
        measured["commit"] = options.commit
    for study in studies(best.codebook):
        if not options.only or study.name in options.only:
            measured["studies"].append(run(study, train_set, test_set, options))
            print(f"wrote {write_result('certified', measured, options.out)}", flush=True)


if __name__ == "__main__":
    main()
