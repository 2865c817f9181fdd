"""How fast data sets are read: python benchmarks/data.py FOLDER, which holds them in their official layouts.

Wall times depend on what else the machine does, so that the processor time is measured beside them.
The result is benchmarks/results/data-DATE.json.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from linocut.data import Images, load
from linocut.data.decoding import read_rgb, square
from linocut.data.folders import plan_imagenette
from linocut.data.plan import usable_cores
from results import write_result

REPEATS = 5


def measure(job: Callable[[], Images]) -> dict[str, Any]:
    """Seconds of wall and of processor time, and images a second by the wall."""
    wall, processor = time.perf_counter(), time.process_time()
    images = job()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return {
        "images": len(images),
        "seconds": round(wall, 3),
        "processor_seconds": round(processor, 3),
        "images_a_second": round(len(images) / wall),
    }


def best(jobs: list[Callable[[], Images]]) -> dict[str, Any]:
    """The quickest of the jobs, and how long each of them took."""
    runs = [measure(job) for job in jobs]
    return min(runs, key=lambda run: run["seconds"]) | {"all_seconds": [run["seconds"] for run in runs]}


def reduced_against_whole(root: Path, size: int = 28, count: int = 200) -> dict[str, float]:
    """Levels by which a JPEG decoded at reduced size differs from the whole one, after resizing both."""
    files = plan_imagenette(root, "test", 112).files[:count]
    gaps = []
    for path in files:
        whole = np.asarray(square(read_rgb(path), size), float)
        gaps.append(np.abs(np.asarray(square(read_rgb(path, shortest=2 * size), size), float) - whole))
    return {"mean_levels": round(float(np.mean(gaps)), 3), "p99_levels": float(np.percentile(gaps, 99))}


def main(root: Path) -> None:
    """Measure, print, and write the result file."""
    measured: dict[str, Any] = {"cores": usable_cores(), "load_average_before": os.getloadavg()[0], "sets": {}}
    sets = measured["sets"]
    for name in ("mnist", "fashion-mnist", "cifar-10"):
        sets[f"{name} train"] = best([lambda name=name: load(name, root)] * REPEATS)
    with tempfile.TemporaryDirectory() as folder:
        caches = [Path(folder) / str(i) for i in range(REPEATS)]
        for name, size in (("gtsrb", 32), ("imagenette", 112)):
            jobs = [lambda c=c, name=name, size=size: load(name, root, image_size=size, cache=c) for c in caches]
            sets[f"{name} train at {size}, first time"] = best(jobs)
            sets[f"{name} train at {size}, mapped"] = best(jobs)
    measured["jpeg_reduced_112_to_28"] = reduced_against_whole(root)
    for name, figures in sets.items():
        print(name, figures)
    print(write_result("data", measured))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
