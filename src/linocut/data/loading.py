"""load: every data set by its name."""

import os
from dataclasses import replace
from pathlib import Path

import torch

from linocut.data.dataset import Images
from linocut.data.plan import Plan, Progress
from linocut.errors import InputError

NAMES = ("mnist", "fashion-mnist", "cifar-10", "gtsrb", "resisc45", "imagenette", "folder", "npz", "digits")
CACHE_FOLDER = ".linocut-cache"
LARGEST_SIDE = 4096


def load(
    name: str,
    root: str | Path | None = None,
    split: str = "train",
    image_size: int | None = None,
    device: str | torch.device = "cpu",
    *,
    cache: str | Path | bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> Images:
    """One split of a data set, as uint8 on the device.

    root: the folder that holds the official folders (mnist/, GTSRB/, ...), LINOCUT_DATA if left out; for `folder` and
    `npz` the folder or file itself; `digits` needs none. image_size: the side to resize to, where the files do not
    fix it. cache: True keeps decoded files in ROOT/.linocut-cache, a folder keeps them there, False
    keeps nothing. seed: chooses the test images where the authors of a set did not. Nothing is downloaded.
    """
    if name not in NAMES:
        raise InputError(f"no data set {name!r}; there are {', '.join(NAMES)}")
    if split not in ("train", "test"):
        raise InputError(f"split must be 'train' or 'test', got {split!r} (what some call val is 'test' here)")
    if image_size is not None and not (isinstance(image_size, int) and 1 <= image_size <= LARGEST_SIDE):
        raise InputError(f"image_size must be a whole number from 1 to {LARGEST_SIDE}, got {image_size!r}")
    try:
        images = _read(name, root, split, image_size, cache, seed, progress)
    except OSError as error:  # a file that vanished or may not be read; readers look after damaged ones
        raise InputError(f"{name}: cannot read {error.filename or root} ({error.strerror or error})") from error
    if len(images) == 0:
        raise InputError(f"{name}: no image for {split!r} (where a class has only one, it is for training)")
    return _moved(images, device)


def root_from_environment() -> Path | None:
    """The folder of data sets that LINOCUT_DATA names; None where it names none."""
    named = os.environ.get("LINOCUT_DATA")
    return Path(named) if named else None


def root_of(name: str, root: str | Path | None) -> str | Path | None:
    """Where a set lies: the root that was named, or else LINOCUT_DATA, but for sets that are themselves the root."""
    return root or (None if name in ("folder", "npz") else root_from_environment())


def _moved(images: Images, device: str | torch.device) -> Images:
    try:
        if torch.device(device).type == "cpu":
            return images
        return replace(images, pixels=images.pixels.to(device), labels=images.labels.to(device))
    except (RuntimeError, AssertionError) as error:  # torch has no one error for a device that is not there
        reason = str(error).splitlines()[0]
        raise InputError(f"the images cannot go to device {str(device)!r}: {reason:.200}") from error


def _read(
    name: str,
    root: str | Path | None,
    split: str,
    image_size: int | None,
    cache: str | Path | bool,
    seed: int,
    progress: Progress | None,
) -> Images:
    """The split on the CPU. A reader is imported when its set is asked for."""
    if name == "digits":
        from linocut.data.digits import read_digits

        return read_digits(split, image_size, seed)
    root = root_of(name, root)
    if root is None:
        raise InputError(
            f"{name} needs root (--root), the folder that holds its files; LINOCUT_DATA names that of all data sets"
        )
    place = Path(root)
    if name in ("mnist", "fashion-mnist", "cifar-10", "npz"):
        images = _read_arrays(name, place, split, seed)
        if image_size not in (None, images.pixels.shape[-1]):
            side = images.pixels.shape[-1]
            raise InputError(f"{name} has images of {side}x{side}, got image_size={image_size}: leave it out")
        return images
    from linocut.data.preparing import prepare

    plan = _plan(name, place, split, image_size, seed)
    folder = place / CACHE_FOLDER if cache is True else Path(cache) if cache else None
    return prepare(plan, folder, progress)


def _read_arrays(name: str, root: Path, split: str, seed: int) -> Images:
    if name == "cifar-10":
        from linocut.data.cifar import read_cifar

        return read_cifar(root, split)
    if name == "npz":
        from linocut.data.arrays import read_npz

        return read_npz(root, split, seed)
    from linocut.data.idx import read_mnist

    return read_mnist(name, root, split)


def _plan(name: str, root: Path, split: str, image_size: int | None, seed: int) -> Plan:
    if name == "gtsrb":
        from linocut.data.gtsrb import plan_gtsrb

        return plan_gtsrb(root, split, image_size)
    from linocut.data import folders

    if name == "imagenette":
        return folders.plan_imagenette(root, split, image_size)
    if name == "resisc45":
        return folders.plan_resisc45(root, split, image_size, seed)
    return folders.plan_folder(root, split, image_size, seed)
