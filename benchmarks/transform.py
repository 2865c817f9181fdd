"""The transform's speed beside what people would write with OpenCV: python benchmarks/transform.py [--seconds 4]

The same images and the same number of threads for both, in one run, so that no ratio is flattered: one thread each,
by processor time, which other programs' load does not touch; then two processes of OpenCV against two threads of ours,
by the clock on the wall. Prints a table and writes benchmarks/results/.
"""

import argparse
import multiprocessing
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np
import torch

from linocut.transform.modules import EssentialFeatures
from results import write_result

CASES = {"28x28x1": "mnist", "32x32x3": "cifar-10", "224x224x3": "imagenette"}


def opencv_pipeline(image: np.ndarray, module: EssentialFeatures) -> np.ndarray:
    """What a user would write today for one uint8 image (H,W,C): OpenCV where it has the step, NumPy elsewhere."""
    settings = module.settings()
    sizes, thresholds, bins = settings["kernel_sizes"], settings["edge_thresholds"], settings["bin_levels"]
    shape = image.shape
    gx, gy = cv2.Sobel(image, cv2.CV_32F, 1, 0), cv2.Sobel(image, cv2.CV_32F, 0, 1)
    response = cv2.magnitude(gx.reshape(-1), gy.reshape(-1)).reshape(shape) * (255 / 1140.4)
    level = sum((response > t).astype(np.uint8) for t in thresholds)
    blurred = [cv2.GaussianBlur(image, (k, k), 0).reshape(shape) for k in sizes]
    y = np.choose(level, blurred)
    small = y
    if max(shape[:2]) > 32:
        small = cv2.resize(y, (32, 32), interpolation=cv2.INTER_AREA).reshape(32, 32, -1)
    pixels = small.reshape(-1, shape[2]).astype(np.float32)
    cubes, labels = np.unique(pixels // bins, axis=0, return_inverse=True)
    centers = cubes * bins + bins / 2
    if len(cubes) > 1:
        stop = (cv2.TERM_CRITERIA_MAX_ITER + cv2.TERM_CRITERIA_EPS, settings["lloyd_steps"], 0.0)
        labels = labels.reshape(-1, 1).astype(np.int32)
        _, labels, centers = cv2.kmeans(pixels, len(cubes), labels, stop, 1, cv2.KMEANS_USE_INITIAL_LABELS)
    order = np.argsort(-np.bincount(labels.ravel(), minlength=len(centers)), kind="stable")
    apart = settings["separation"] * 255 * settings["eps"]
    kept: list[np.ndarray] = []
    for color in centers[order]:
        if not kept or np.min(np.linalg.norm(np.array(kept) - color, axis=1)) >= apart:
            kept.append(color)
    palette = np.array(kept, dtype=np.float32)
    every = y.reshape(-1, shape[2]).astype(np.float32)
    nearest = ((every[:, None] - palette[None]) ** 2).sum(axis=2).argmin(axis=1)
    return np.rint(palette[nearest]).astype(np.uint8).reshape(shape)


def photograph_patches(side: int, channels: int, count: int) -> np.ndarray:
    """uint8 (count, side, side, channels) patches of scikit-learn's two photographs, at scales that fill the frame."""
    from sklearn.datasets import load_sample_images

    generator = np.random.default_rng(0)
    patches = []
    for _ in range(count):
        photo = load_sample_images().images[int(generator.integers(2))]
        cut = int(generator.integers(max(side, 64), min(photo.shape[:2])))
        top, left = (int(generator.integers(0, s - cut + 1)) for s in photo.shape[:2])
        patch = cv2.resize(photo[top : top + cut, left : left + cut], (side, side), interpolation=cv2.INTER_AREA)
        patches.append(patch if channels == 3 else patch.mean(axis=2, keepdims=True).astype(np.uint8))
    return np.stack(patches)


def rate(call, images: int, seconds: float, threads: int) -> float:
    """Images a second, the best of repeated calls within the time."""
    clock = time.process_time if threads == 1 else time.perf_counter
    call()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        start = clock()
        call()
        best = min(best, clock() - start)
    return images / best


def opencv_worker(arguments: tuple) -> float:
    """Images a second of the OpenCV pipeline in a process of its own."""
    preset, images, seconds, processes = arguments
    cv2.setNumThreads(1)
    module = EssentialFeatures.preset(preset)
    return rate(lambda: [opencv_pipeline(image, module) for image in images], len(images), seconds, processes)


def measure(case: str, seconds: float) -> dict:
    preset = CASES[case]
    side, _, channels = (int(n) for n in case.split("x"))
    images = photograph_patches(side, channels, 128 if side < 100 else 24)
    x = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous().float() / 255
    row: dict = {"case": case, "preset": preset, "images": len(images)}
    cv2.setNumThreads(1)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        with multiprocessing.get_context("spawn").Pool(threads) as pool:
            opencv = sum(pool.map(opencv_worker, [(preset, images[:24], seconds, threads)] * threads))
        row[f"opencv_{threads}"] = opencv
        for backend in ("reference", "torch", "numba"):
            if backend == "reference" and threads == 2:
                continue
            module = EssentialFeatures(**{**EssentialFeatures.preset(preset).settings(), "backend": backend})
            batch = x[:4] if backend == "reference" else x
            speed = rate(lambda module=module, batch=batch: module(batch), len(batch), seconds, threads)
            row[f"{backend}_{threads}"] = speed
            row[f"{backend}_{threads}_over_opencv"] = speed / opencv
            print(
                f"{case:>10}  {threads} thread(s)  {backend:<9} {speed:>10,.0f} images/s"
                f"   {speed / opencv:>7.1f} x OpenCV's {opencv:,.0f}",
                flush=True,
            )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--case", choices=list(CASES), action="append")
    arguments = parser.parse_args()
    rows = [measure(case, arguments.seconds) for case in arguments.case or CASES]
    print("written to", write_result("transform", {"cpu": rows}))


if __name__ == "__main__":
    main()
