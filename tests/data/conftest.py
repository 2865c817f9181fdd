"""Small files in every official layout."""

import gzip

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def random():
    return np.random.default_rng(7)


@pytest.fixture
def write_idx():
    """write_idx(path, array): an IDX file of uint8, gzipped where the name says so."""

    def write(path, array):
        path.parent.mkdir(parents=True, exist_ok=True)
        header = bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">u4").tobytes()
        content = header + array.astype(np.uint8).tobytes()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)

    return write


@pytest.fixture
def write_picture():
    """write_picture(path, array (H, W, 3) or (H, W)): an image in the format its name says."""

    def write(path, array, **options):
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(array).save(path, **options)

    return write


@pytest.fixture
def class_folders(random, write_picture):
    """class_folders(root, counts, side): root/NAME/0.png ..., random pictures."""

    def write(root, counts, side=8, suffix=".png"):
        for name, count in counts.items():
            for i in range(count):
                pixels = random.integers(0, 256, (side, side, 3), np.uint8)
                write_picture(root / name / f"{i:03d}{suffix}", pixels)
        return root

    return write
