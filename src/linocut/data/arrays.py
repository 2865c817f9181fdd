"""A .npz file of uint8 images and labels."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from linocut.data.dataset import Images, from_arrays
from linocut.data.splits import held_out
from linocut.errors import InputError

LARGEST = 2**34  # bytes, unpacked
MOST_CLASSES = 100_000
PAIRS = (("x_{split}", "y_{split}"), ("{split}_images", "{split}_labels"))
WANTED = "x_train, y_train, x_test, y_test, or images and labels (and, if you like, classes)"


def read_npz(path: Path, split: str, seed: int) -> Images:
    """One split of the file; where it holds `images` and `labels` alone, a seeded fifth is for testing."""
    if not path.is_file():
        raise InputError(f"npz: {path} is missing; give the .npz file itself as root")
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > LARGEST:
            raise InputError(f"{path}: {unpacked} bytes when unpacked, wanted at most {LARGEST}")
        with np.load(path, allow_pickle=False) as arrays:
            return _choose(path, arrays, split, seed)
    except InputError:
        raise
    except Exception as error:  # a forged archive makes zipfile and NumPy raise a dozen kinds
        raise InputError(f"{path}: no usable .npz file ({error}); wanted {WANTED}") from error


def _choose(path: Path, arrays: Mapping[str, np.ndarray], split: str, seed: int) -> Images:
    """The split, reading no more images than its own."""
    notes: tuple[str, ...] = ()
    for pixels_name, labels_name in PAIRS:
        names = pixels_name.format(split=split), labels_name.format(split=split)
        if all(name in arrays for name in names):
            pixels, labels = _pixels(path, arrays[names[0]]), _labels(path, arrays[names[1]])
            every = [_labels(path, arrays[name]) for name in arrays if _is_labels(name)]
            break
    else:
        if not {"images", "labels"} <= set(arrays):
            raise InputError(f"{path}: holds {sorted(arrays)}, wanted {WANTED}")
        pixels, labels = _pixels(path, arrays["images"]), _labels(path, arrays["labels"])
        every = [labels]
        if len(pixels) == len(labels):
            test = np.array(held_out([str(i) for i in range(len(labels))], labels.tolist(), seed=seed), bool)
            pixels, labels = (a[test == (split == "test")] for a in (pixels, labels))
            notes = (f"no split given: a fifth of each class is for testing, chosen by seed {seed}",)
    if len(pixels) != len(labels):
        raise InputError(f"{path}: {len(pixels)} images and {len(labels)} labels, wanted as many of each")
    classes = _classes(path, arrays, every)
    return from_arrays(pixels=pixels, labels=labels, classes=classes, name="npz", split=split, notes=notes)


def _is_labels(name: str) -> bool:
    return name.startswith("y_") or name.endswith("_labels")


def _classes(path: Path, arrays: Mapping[str, np.ndarray], labels: list[np.ndarray]) -> tuple[str, ...]:
    """The names the file gives, else the numbers up to the largest label of any split."""
    if "classes" in arrays:
        given = arrays["classes"]
        if given.ndim != 1:
            raise InputError(f"{path}: classes of shape {given.shape}, wanted a list of names")
        return tuple(str(name) for name in given)
    largest = max(int(part.max(initial=-1)) for part in labels)
    if largest >= MOST_CLASSES:
        raise InputError(f"{path}: a label of {largest}, wanted labels below {MOST_CLASSES}")
    return tuple(str(i) for i in range(largest + 1))


def _pixels(path: Path, array: np.ndarray) -> np.ndarray:
    """The array as (N, C, H, W), from any of the usual layouts."""
    if array.dtype != np.uint8:
        raise InputError(f"{path}: images of {array.dtype}, wanted uint8 (floats in 0..1: multiply by 255 and round)")
    if array.ndim == 3:
        return array[:, None]
    if array.ndim == 4 and array.shape[3] in (1, 3):
        return array.transpose(0, 3, 1, 2)
    if array.ndim == 4 and array.shape[1] in (1, 3):
        return array
    raise InputError(f"{path}: images of shape {array.shape}, wanted (N,H,W), (N,H,W,C) or (N,C,H,W), C being 1 or 3")


def _labels(path: Path, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "iu":
        raise InputError(f"{path}: labels of {array.dtype}, wanted whole numbers")
    if array.ndim != 1 and not (array.ndim == 2 and array.shape[1] == 1):
        raise InputError(f"{path}: labels of shape {array.shape}, wanted (N,) or (N,1)")
    return array.reshape(-1).astype(np.int64)
