"""A .npz file of uint8 images and labels."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from linocut.data.dataset import Images, from_arrays
from linocut.data.splits import held_out
from linocut.errors import InputError

LARGEST = 2**34  # bytes, unpacked
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
            return _choose(path, dict(arrays), split, seed)
    except InputError:
        raise
    except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: no usable .npz file ({error}); wanted {WANTED}") from error


def _choose(path: Path, arrays: dict[str, np.ndarray], split: str, seed: int) -> Images:
    notes: tuple[str, ...] = ()
    for pixels_name, labels_name in PAIRS:
        names = pixels_name.format(split=split), labels_name.format(split=split)
        if all(name in arrays for name in names):
            pixels, labels = _pixels(path, arrays[names[0]]), _labels(path, arrays[names[1]])
            every = np.concatenate(
                [_labels(path, v) for k, v in arrays.items() if k.startswith("y_") or k.endswith("_labels")]
            )
            break
    else:
        if not {"images", "labels"} <= arrays.keys():
            raise InputError(f"{path}: holds {sorted(arrays)}, wanted {WANTED}")
        pixels, labels = _pixels(path, arrays["images"]), _labels(path, arrays["labels"])
        every = labels
        if len(pixels) == len(labels):
            test = np.array(held_out([str(i) for i in range(len(labels))], labels.tolist(), seed=seed), bool)
            pixels, labels = (a[test == (split == "test")] for a in (pixels, labels))
            notes = (f"no split given: a fifth of each class is for testing, chosen by seed {seed}",)
    if len(pixels) != len(labels):
        raise InputError(f"{path}: {len(pixels)} images and {len(labels)} labels, wanted as many of each")
    if "classes" in arrays:
        classes = tuple(str(name) for name in arrays["classes"])
    else:
        classes = tuple(str(i) for i in range(int(every.max(initial=-1)) + 1))
    return from_arrays(pixels=pixels, labels=labels, classes=classes, name="npz", split=split, notes=notes)


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
    return (
        array.reshape(len(array), -1)[:, 0].astype(np.int64)
        if array.ndim == 2 and array.shape[1] == 1
        else array.astype(np.int64)
    )
