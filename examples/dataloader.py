"""The transform in a data pipeline: in the loader's workers, on whole batches, or on the GPU; which is fastest here.

    python examples/dataloader.py [--data cifar-10 --root DATA] [--count 4096] [--workers 2]
    python examples/dataloader.py --folder PICTURES --out PAINTED --processes 4

The first form measures images a second for each place and says which to take. The second paints a folder of
pictures, sub-folder by sub-folder, in several processes at a time.
"""

import argparse
import subprocess
import sys
import time
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


def one_thread(_: int) -> None:
    """A worker is one of several processes already: more threads in each only get into each other's way."""
    torch.set_num_threads(1)


def in_workers(images: Images, transform: torch.nn.Module, workers: int, count: int) -> float:
    """Images a second when every worker transforms the images it loads."""
    loader = DataLoader(
        Painted(images, transform), BATCH, num_workers=workers, worker_init_fn=one_thread, persistent_workers=True
    )
    for _ in zip(range(2 * workers), loader, strict=False):
        pass  # the workers start and compile
    started, seen = time.perf_counter(), 0
    for batch, _ in loader:
        seen += len(batch)
        if seen >= count:
            break
    return seen / (time.perf_counter() - started)


def on_batches(images: Images, transform: torch.nn.Module, device: str, count: int) -> float:
    """Images a second when uint8 batches come from the loader and are transformed whole, where the network is."""
    transform(images.unit(torch.arange(min(BATCH, len(images)))).to(device))
    loader = DataLoader(Painted(images, None), BATCH, pin_memory=device == "cuda")
    started, seen = time.perf_counter(), 0
    for pixels, _ in loader:
        transform(pixels.to(device, non_blocking=True).float() / 255)
        seen += len(pixels)
        if seen >= count:
            break
    if device == "cuda":
        torch.cuda.synchronize()
    return seen / (time.perf_counter() - started)


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
    speeds = {
        f"in {options.workers} workers": in_workers(images, transform, options.workers, options.count),
        "on batches, CPU": on_batches(images, transform, "cpu", options.count),
    }
    if torch.cuda.is_available():
        speeds["on batches, GPU"] = on_batches(images, transform.to("cuda"), "cuda", options.count)
    for place, speed in speeds.items():
        print(f"{place:18} {speed:10,.0f} images a second")
    print(f"take: {max(speeds, key=lambda place: speeds[place])}")


if __name__ == "__main__":
    main()
