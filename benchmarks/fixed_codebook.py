"""Fixed codebooks, timed: python benchmarks/fixed_codebook.py --root DATA [--threads 2] [--imagenette]

How long fitting and painting take on CIFAR-10, by the clock on the wall and in processor time, which other work on the
machine sways little. With --imagenette also the fit of 500 codes on its pictures at 112 pixels, which are mapped from
the cache file and counted piece by piece: its time and the most memory the process held. Rows of the paper's tables
under attack: fixed_rows.py.
"""

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path

import torch

from linocut.data import load
from linocut.transform.modules import FixedCodebook
from linocut.transform.presets import FIXED
from results import write_result


def seconds(call: Callable[[], object], times: int = 3) -> dict[str, float]:
    """The best of a few calls by each clock; processor time is that of all threads together."""
    best = {"wall": float("inf"), "processor": float("inf")}
    for _ in range(times):
        wall, processor = time.perf_counter(), time.process_time()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        found = {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}
        best = {clock: min(best[clock], found[clock]) for clock in best}
    return best


def rate(count: int, call: Callable[[], object], times: int = 3) -> dict[str, float]:
    """Images a second, by each clock."""
    return {clock: round(count / took) for clock, took in seconds(call, times).items()}


def speed(root: Path) -> dict:
    """Fitting on all of CIFAR-10, painting its images with 300 codes, gradients through their Jacobian."""
    images = load("cifar-10", root, "train")
    FixedCodebook.fit(images.pixels[:2], 2)  # compiles
    book = FixedCodebook.fit(images, **FIXED["cifar-10"])
    found: dict = {"cifar_fit_seconds": seconds(lambda: FixedCodebook.fit(images, **FIXED["cifar-10"]))}
    x = images.unit(slice(0, 512))
    between = (x + 0.03 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))).clamp(0, 1)
    for name, batch in (("levels", x), ("iterates", between)):
        found[f"numba_{name}_per_second"] = rate(512, lambda batch=batch: book(batch), 20)
    plain = FixedCodebook(**{**book.settings(), "backend": "torch"})
    found["torch_per_second"] = rate(64, lambda: plain(x[:64]))
    moving = x[:16].clone().requires_grad_()
    found["soft_gradients_per_second"] = rate(16, lambda: torch.autograd.grad(book(moving).sum(), moving))
    return found


def cuda_speed(root: Path) -> dict:
    """Painting and gradients on a GPU."""
    images = load("cifar-10", root, "train")
    book = FixedCodebook.fit(images, **FIXED["cifar-10"])
    many = images.unit(slice(0, 512)).repeat(16, 1, 1, 1).cuda()
    found = {}
    for backend in ("triton", "torch"):
        there = FixedCodebook(**{**book.settings(), "backend": backend}).cuda()
        there(many)
        found[f"cuda_{backend}_per_second"] = rate(len(many), lambda there=there: there(many), 8)
    moving, there = many[:500].clone().requires_grad_(), book.cuda()
    found["cuda_soft_gradients_per_second"] = rate(500, lambda: torch.autograd.grad(there(moving).sum(), moving), 5)
    return found


def peak_mib() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def imagenette(root: Path) -> dict:
    """Fitting on Imagenette at 112 pixels, once; the pages of the mapped file count as memory of the process."""
    load("imagenette", root, "train", 112)  # decodes and caches at the first time
    FixedCodebook.fit(torch.zeros(1, 3, 1, 1, dtype=torch.uint8), 1)  # compiles
    before = peak_mib()
    images = load("imagenette", root, "train", 112)
    took = seconds(lambda: FixedCodebook.fit(images, **FIXED["imagenette"]), 1)
    return {
        "images": len(images),
        "megapixels": round(images.pixels.numel() / 3e6, 1),
        "fit_seconds": took,
        "peak_mib_before": before,
        "peak_mib_after": peak_mib(),
        "pixels_mib": round(images.pixels.numel() / 2**20, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--imagenette", action="store_true")
    parser.add_argument("--out", type=Path, help="folder of the record; benchmarks/results if left out")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    found: dict = {"threads": options.threads}
    if options.imagenette:  # first, while little memory was ever held
        found["imagenette"] = imagenette(options.root)
        print(found, flush=True)
    found["speed"] = speed(options.root) | (cuda_speed(options.root) if torch.cuda.is_available() else {})
    print(found, flush=True)
    print("written to", write_result("fixed-codebook", found, **({"folder": options.out} if options.out else {})))


if __name__ == "__main__":
    main()
