"""CIFAR-10: the binary batches, or the Python pickles where only those are present."""

from pathlib import Path

import numpy as np

from linocut.data.cifar_pickle import read_pickled_batch
from linocut.data.dataset import Images, from_arrays
from linocut.data.places import damaged, find_folder, missing

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FOLDERS = ("cifar-10-batches-bin", "cifar-10-batches-py")
PIXELS = 3 * 32 * 32
RECORD = 1 + PIXELS  # a label byte, then the red, green and blue planes
MOST_RECORDS = 10_000


def read_cifar(root: Path, split: str) -> Images:
    """One split of CIFAR-10: colour images (N, 3, 32, 32)."""
    folder = find_folder(root, "cifar-10", FOLDERS)
    batches = [f"data_batch_{i}" for i in range(1, 6)] if split == "train" else ["test_batch"]
    binary = folder.name == FOLDERS[0]
    parts = []
    for batch in batches:
        path = folder / (f"{batch}.bin" if binary else batch)
        if not path.is_file():
            raise missing("cifar-10", path, root)
        parts.append(_read_binary_batch(path) if binary else read_pickled_batch(path))
    pixels = np.concatenate([p for p, _ in parts]).reshape(-1, 3, 32, 32)
    labels = np.concatenate([l for _, l in parts])
    if len(labels) and labels.max() >= len(CLASSES):
        raise damaged(folder, f"a label of {labels.max()}", f"labels below {len(CLASSES)}")
    return from_arrays(pixels=pixels, labels=labels, classes=CLASSES, name="cifar-10", split=split)


def _read_binary_batch(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (N, 3072) and labels (N,) of one .bin file."""
    size = path.stat().st_size
    if size == 0 or size % RECORD or size > MOST_RECORDS * RECORD:
        raise damaged(path, f"{size} bytes", f"1 to {MOST_RECORDS} records of {RECORD} bytes")
    records = np.fromfile(path, np.uint8).reshape(-1, RECORD)
    return records[:, 1:], records[:, 0]
