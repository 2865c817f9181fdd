"""Folders of class folders: Imagenette, RESISC45, and anyone's own."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from linocut.data.decoding import decoder, planes, read_rgb, square
from linocut.data.images import image_suffixes
from linocut.data.places import bears, find_folder, missing
from linocut.data.plan import Plan
from linocut.data.splits import held_out
from linocut.errors import InputError

IMAGENETTE = {
    "n01440764": "tench",
    "n02102040": "English springer",
    "n02979186": "cassette player",
    "n03000684": "chain saw",
    "n03028079": "church",
    "n03394916": "French horn",
    "n03417042": "garbage truck",
    "n03425413": "gas pump",
    "n03445777": "golf ball",
    "n03888257": "parachute",
}
IMAGENETTE_FOLDERS = {
    112: "imagenette2-112",
    160: "imagenette2-160",
    320: "imagenette2-320",
    10**6: "imagenette2",
}
IMAGENETTE_SIZE = 224
RESISC45_SIZE = 256
RESISC45_CLASSES = 45


def plan_imagenette(root: Path, split: str, image_size: int | None) -> Plan:
    """The plan for Imagenette, from the smallest copy that is large enough, else the largest there is."""
    present = {size: root / name for size, name in IMAGENETTE_FOLDERS.items() if (root / name).is_dir()}
    present |= {size: root for size, name in IMAGENETTE_FOLDERS.items() if bears(root, name)}
    if not present:
        raise missing("imagenette", root / IMAGENETTE_FOLDERS[320], root)
    enough = [size for size in present if size >= (image_size or IMAGENETTE_SIZE)]
    stored = min(enough) if enough else max(present)
    folder = present[stored] / ("train" if split == "train" else "val")
    if not folder.is_dir():
        raise missing("imagenette", folder, root)
    files, labels, names, _ = list_classes(folder)
    size = image_size or min(IMAGENETTE_SIZE, stored)
    return _plan(
        "imagenette",
        split,
        tuple(IMAGENETTE.get(name, name) for name in names),
        folder,
        files,
        labels,
        size,
        (f"from {IMAGENETTE_FOLDERS[stored]}",) + ((f"enlarged from {stored} pixels",) if size > stored else ()),
    )


def plan_resisc45(root: Path, split: str, image_size: int | None, seed: int) -> Plan:
    """The plan for RESISC45, which has no official split: a fifth of each class is for testing."""
    folder = find_folder(root, "resisc45", ("NWPU-RESISC45",))
    files, labels, names, _ = list_classes(folder)
    chosen = _of_split(folder, files, labels, split, seed)
    notes = [f"no official split: a fifth of each class is for testing, chosen by seed {seed}"]
    if len(names) != RESISC45_CLASSES:
        notes.append(f"{len(names)} of {RESISC45_CLASSES} classes are present")
    classes = tuple(name.replace("_", " ") for name in names)
    return _plan("resisc45", split, classes, folder, *chosen, image_size or RESISC45_SIZE, tuple(notes))


def plan_folder(root: Path, split: str, image_size: int | None, seed: int) -> Plan:
    """The plan for any folder: train/ with test/ or val/ inside, or class folders and a seeded split."""
    if not root.is_dir():
        raise InputError(f"folder: {root} is no folder; wanted class folders, or train/ and test/ that hold them")
    notes: tuple[str, ...] = ()
    if (root / "train").is_dir():
        halves = [root / "train"] if split == "train" else [root / "test", root / "val"]
        folder = next((half for half in halves if half.is_dir()), None)
        if folder is None:
            raise InputError(f"folder: {root} has train/ but neither test/ nor val/; add one of them")
        files, labels, names, ignored = found = list_classes(folder)
        training, _, trained, _ = found if split == "train" else list_classes(root / "train")
        first = training[0]
        if names != trained:
            raise InputError(
                f"folder: {folder} and {root / 'train'} have other classes: {sorted({*names} ^ {*trained})}"
            )
    else:
        folder = root
        files, labels, names, ignored = list_classes(root)
        first = files[0]
        files, labels = _of_split(root, files, labels, split, seed)
        notes = (f"no split given: a fifth of each class is for testing, chosen by seed {seed}",)
    if ignored:
        notes += (f"{ignored} files that are no images were left out",)
    size = image_size or _side_of(first)
    return _plan("folder", split, tuple(names), folder, files, labels, size, notes)


def list_classes(folder: Path) -> tuple[list[Path], list[int], list[str], int]:
    """Files, labels and class names in sorted order, and how many files are no images by their name."""
    suffixes = image_suffixes()
    names = sorted(child.name for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))
    files: list[Path] = []
    labels: list[int] = []
    ignored = 0
    for label, name in enumerate(names):
        with os.scandir(folder / name) as entries:  # several times as fast as pathlib, which shows at 9,469 files
            found = sorted(e.name for e in entries if not e.name.startswith(".") and e.is_file())
        images = [folder / name / f for f in found if os.path.splitext(f)[1].lower() in suffixes]
        ignored += len(found) - len(images)
        files += images
        labels += [label] * len(images)
    if not files:
        raise InputError(f"{folder}: no class folders with images; wanted {folder}/CLASS/PICTURE.jpg (or png, ppm)")
    shown = [os.fsencode(name).decode(errors="replace") for name in names]  # a name need not be UTF-8
    return files, labels, shown, ignored


def _of_split(
    folder: Path, files: Sequence[Path], labels: Sequence[int], split: str, seed: int
) -> tuple[list[Path], list[int]]:
    test = held_out([f.relative_to(folder).as_posix() for f in files], labels, seed=seed)
    chosen = [i for i in range(len(files)) if test[i] == (split == "test")]
    return [files[i] for i in chosen], [labels[i] for i in chosen]


def _side_of(first: Path) -> int:
    """The side of the first picture of all splits, where it is square; one of another size is resized to it."""
    width, height = read_rgb(first).size
    if width != height:
        raise InputError(f"{first} is {width}x{height}, no square: say image_size, the side to resize to")
    return width


def _plan(
    name: str,
    split: str,
    classes: tuple[str, ...],
    folder: Path,
    files: Sequence[Path],
    labels: Sequence[int],
    size: int,
    notes: tuple[str, ...],
) -> Plan:
    def decode(index: int) -> np.ndarray:
        # Twice the size is left to the antialiased resize, so that a reduced JPEG looks like the whole one.
        return planes(square(read_rgb(files[index], shortest=2 * size), size))

    settings: dict[str, Any] = {
        "preparation": "centre square 1",
        "resampling": Image.Resampling.BILINEAR.name,
    }
    return Plan(
        name=name,
        split=split,
        classes=classes,
        folder=folder,
        files=tuple(files),
        labels=tuple(labels),
        shape=(3, size, size),
        decode=decode,
        settings=settings | decoder(),
        notes=notes,
    )
