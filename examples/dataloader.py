"""The transform in a data pipeline: in the loader's workers, on whole batches, or on the GPU; which is fastest here.

    python examples/dataloader.py [--data cifar-10 --root DATA] [--count 4096] [--workers 2]
    python examples/dataloader.py --folder PICTURES --out PAINTED --processes 4

The first form measures images a second for each place and says which to take; with a GPU the images always end
there. The second paints a folder of pictures, sub-folder by sub-folder, in several processes at a time.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

from linocut import EssentialFeatures
from linocut.data import load
from linocut.data.dataset import Images

BATCH = 128


class Painted(Dataset):
    """Image by image, as most data sets are: uint8 in the set, transformed floats out (in a worker)."""

    def __init__(self, images: Images, transform: torch.nn.Module | None):
        self.images, self.transform = images, transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        pixels = self.images.pixels[index]
        if self.transform is None:
            return pixels, int(self.images.labels[index])
        return self.transform(pixels[None].float() / 255)[0], int(self.images.labels[index])


def in_workers(images: Images, transform: torch.nn.Module, workers: int, count: int, device: str) -> float:
    """Images a second, on the device, when every worker transforms the images it loads."""
    return speed(Painted(images, transform), workers, count, device, lambda batch: batch.to(device, non_blocking=True))


def on_batches(images: Images, transform: torch.nn.Module, workers: int, count: int, device: str, place: str) -> float:
    """Images a second, on the device, when workers only load and whole uint8 batches are transformed at the place."""

    def step(pixels: torch.Tensor) -> torch.Tensor:
        return transform(pixels.to(place, non_blocking=True).float() / 255).to(device)

    return speed(Painted(images, None), workers, count, device, step)


def speed(dataset: Dataset, workers: int, count: int, device: str, step: Callable) -> float:
    """Images a second from the loader through `step`, after a few batches with which everything starts."""
    loader = DataLoader(
        dataset, BATCH, num_workers=workers, pin_memory=device == "cuda", persistent_workers=workers > 0
    )
    for _, (batch, _) in zip(range(2 * workers + 1), loader, strict=False):
        step(batch)
    finish(device)
    started, seen = time.perf_counter(), 0
    while seen < count:
        for batch, _ in loader:
            step(batch)
            seen += len(batch)
            if seen >= count:
                break
    finish(device)
    return seen / (time.perf_counter() - started)


def finish(device: str) -> None:
    """A GPU works on after a call returns: waits for it."""
    if device == "cuda":
        torch.cuda.synchronize()


def paint_folder(folder: Path, out: Path, processes: int) -> int:
    """Paint every picture below `folder`; the exit status is the worst of the commands'.

    Each sub-folder, and the files at the top together, are one `linocut transform`; so many run at a time.
    """
    entries = sorted(folder.iterdir())
    tasks = [([entry], out / entry.name) for entry in entries if entry.is_dir()]
    if files := [entry for entry in entries if entry.is_file()]:
        tasks.append((files, out))

    def paint(task: tuple[list[Path], Path]) -> int:
        sources, target = task
        command = [sys.executable, "-m", "linocut", "transform", *map(str, sources), "--out", str(target)]
        return subprocess.run(command, stdout=subprocess.DEVNULL).returncode

    with ThreadPoolExecutor(processes) as pool:
        return max(pool.map(paint, tasks), default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits")
    parser.add_argument("--root", type=Path)
    parser.add_argument("--preset", default=None, help="the data set's own if left out")
    parser.add_argument("--count", type=int, default=4096)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("painted"))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if options.folder:
        sys.exit(paint_folder(options.folder, options.out, options.processes))
    images = load(options.data, root=options.root, split="train")
    preset = options.preset or {"digits": "mnist"}.get(options.data, options.data)
    transform = EssentialFeatures.preset(preset, image_size=tuple(images.pixels.shape[2:]))
    transform(images.unit(torch.arange(2)))  # compiles the CPU kernels once, for the workers to come too
    device = "cuda" if torch.cuda.is_available() else "cpu"
    run = (images, transform, options.workers, options.count, device)
    speeds = {"one by one in the workers": in_workers(*run), "batches on the CPU": on_batches(*run, "cpu")}
    if device == "cuda":
        speeds["batches on the GPU"] = on_batches(*run, "cuda")
    for place, found in speeds.items():
        print(f"{place:26} {found:10,.0f} images a second ({options.workers} workers)")
    print(f"take: {max(speeds, key=lambda place: speeds[place])}")


if __name__ == "__main__":
    main()
