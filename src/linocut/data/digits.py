"""The digits inside scikit-learn's wheel: the data set that is always there, without a network."""

import numpy as np
from PIL import Image

from linocut.data.dataset import Images, from_arrays
from linocut.data.splits import held_out
from linocut.errors import InputError

SIZE = 28
DARKEST_INK = 16  # scikit-learn's digits have levels 0..16


def read_digits(split: str, image_size: int | None, seed: int) -> Images:
    """1,797 handwritten digits, 8x8 enlarged to 28x28 grey, of which a fifth of each class is for testing."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise InputError("digits come with scikit-learn: pip install 'linocut[data]'") from error
    size = image_size or SIZE
    bunch = load_digits()
    levels = np.rint(bunch.images * (255 / DARKEST_INK)).astype(np.uint8)
    labels = bunch.target.astype(np.int64)
    test = np.array(held_out([str(i) for i in range(len(labels))], labels.tolist(), seed=seed))
    chosen = test if split == "test" else ~test
    enlarged = [
        np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR)) for image in levels[chosen]
    ]
    return from_arrays(
        pixels=np.stack(enlarged)[:, None],
        labels=labels[chosen],
        classes=tuple("0123456789"),
        name="digits",
        split=split,
        notes=(
            f"8x8 enlarged to {size}x{size}",
            f"no official split: a fifth of each class is for testing, chosen by seed {seed}",
        ),
    )
