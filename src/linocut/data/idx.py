"""MNIST and Fashion-MNIST: the IDX format, gzipped as published or unpacked."""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from linocut.data.dataset import Images, from_arrays
from linocut.data.places import damaged, find_folder, missing

DIGITS = tuple("0123456789")
GARMENTS = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
FOLDERS = {
    "mnist": ("mnist", "MNIST/raw"),
    "fashion-mnist": ("fashion-mnist", "FashionMNIST/raw"),
}
LARGEST = 2**31  # bytes: forty times the official training images


def read_mnist(name: str, root: Path, split: str) -> Images:
    """One split of `mnist` or `fashion-mnist`: grey images (N, 1, 28, 28)."""
    folder = find_folder(root, name, FOLDERS[name])
    prefix = "train" if split == "train" else "t10k"
    pixels = read_idx(_either(folder, f"{prefix}-images-idx3-ubyte", name, root), dimensions=3)
    labels = read_idx(_either(folder, f"{prefix}-labels-idx1-ubyte", name, root), dimensions=1)
    if len(pixels) != len(labels):
        raise damaged(folder, f"{len(pixels)} {prefix} images and {len(labels)} labels", "as many of each")
    classes = DIGITS if name == "mnist" else GARMENTS
    return from_arrays(pixels=pixels[:, None], labels=labels, classes=classes, name=name, split=split)


def _either(folder: Path, stem: str, name: str, root: Path) -> Path:
    """The file as published (.gz), or unpacked; some tools write a dot for the second dash."""
    for candidate in (f"{stem}.gz", stem, stem.replace("-idx", ".idx")):
        if (folder / candidate).is_file():
            return folder / candidate
    raise missing(name, folder / f"{stem}.gz", root)


def read_idx(path: Path, *, dimensions: int) -> np.ndarray:
    """The uint8 array of an IDX file, which must hold the bytes its header promises, and no more."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            header = stream.read(4 + 4 * dimensions)
            if len(header) != 4 + 4 * dimensions or header[:4] != bytes((0, 0, 8, dimensions)):
                raise damaged(path, f"the first bytes {header[:4].hex()}", f"0000080{dimensions} (IDX, uint8)")
            shape = tuple(int(n) for n in np.frombuffer(header, ">u4", offset=4))
            size = math.prod(shape)
            if size > LARGEST:
                raise damaged(path, f"a header that promises {shape}", f"at most {LARGEST} bytes")
            body = stream.read(size + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, f"data that cannot be read ({error})", "a whole IDX file") from error
    if len(body) != size:
        raise damaged(path, f"{'more' if len(body) > size else len(body)} bytes", f"the {size} its header promises")
    return np.frombuffer(bytearray(body), np.uint8).reshape(shape)
