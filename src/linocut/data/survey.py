"""What lies in a folder: which sets, how many images of each class, of what shape, and their hashes."""

from pathlib import Path
from typing import Any

from linocut.data import folders, idx
from linocut.data.catalogue import ENTRIES
from linocut.data.cifar import FOLDERS as CIFAR_FOLDERS
from linocut.data.dataset import Images
from linocut.data.download import holds
from linocut.data.places import bears, find_folder

FOLDERS: dict[str, tuple[str, ...]] = {
    **idx.FOLDERS,
    "cifar-10": CIFAR_FOLDERS,
    "gtsrb": ("GTSRB",),
    "resisc45": ("NWPU-RESISC45",),
    "imagenette": tuple(folders.IMAGENETTE_FOLDERS.values()),
}


def present(root: Path) -> list[str]:
    """The names under which the sets in this folder can be loaded with it as their root."""
    if root.suffix == ".npz":
        return ["npz"]
    named = [
        name
        for name, places in FOLDERS.items()
        if any((root / place).is_dir() or bears(root, place) for place in places)
    ]
    return named or ["folder"]


def published_files(name: str, root: Path) -> dict[str, bool]:
    """For each file that lies there as published, not unpacked: whether it has the published hash."""
    files = ENTRIES[name].files if name in ENTRIES else ()
    paths = [(file, find_folder(root, name, FOLDERS[name]) / file.file_name) for file in files if not file.unpack]
    return {file.file_name: holds(file, path) for file, path in paths if path.is_file()}


def summarise(images: Images) -> dict[str, Any]:
    """The set in numbers, ready for JSON. whole: how many images the split has as published."""
    per_class = images.labels.bincount(minlength=len(images.classes)).tolist()
    published = ENTRIES.get(images.name)
    return {
        "name": images.name,
        "split": images.split,
        "images": len(images),
        "whole": published.images[images.split == "test"] if published else None,
        "shape": list(images.pixels.shape[1:]),
        "sha256": images.sha256,
        "classes": dict(zip(images.classes, per_class, strict=True)),
        "notes": list(images.notes),
    }
