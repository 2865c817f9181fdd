"""Images to try the transform on, and the backends that this machine has."""

import numpy as np
import pytest
import torch

from linocut.errors import InputError
from linocut.transform.kernels import dispatch


def draw_image(rng, channels, height, width):
    """One image of unit floats in one of six kinds: flat, two-coloured, smooth, noisy, whole levels, off the grid."""
    kind = rng.integers(6)
    noise = rng.random((channels, height, width))
    if kind == 0:
        image = np.broadcast_to(rng.random((channels, 1, 1)), noise.shape)
    elif kind == 1:
        image = np.where(noise[:1] < 0.5, rng.random((channels, 1, 1)), rng.random((channels, 1, 1)))
    elif kind == 2:
        down, across = np.linspace(0, 1, height)[:, None], np.linspace(0, 1, width)[None]
        slope = rng.uniform(-1, 1, (2, channels, 1, 1))
        image = np.clip(0.5 + slope[0] * (down - 0.5) + slope[1] * (across - 0.5) + 0.03 * noise, 0, 1)
    elif kind == 3:
        image = noise
    elif kind == 4:
        image = np.floor(256 * noise) / 255
        image = np.clip(image, 0, 1)
    else:
        image = 0.2 + rng.random() * 0.3 * noise
    return image.astype(np.float32)


@pytest.fixture(scope="session")
def draw():
    """draw(seed, number, channels, height, width) -> images of many kinds, (number,C,H,W) float32."""

    def images(seed, number, channels=3, height=16, width=16):
        rng = np.random.default_rng(seed)
        return torch.from_numpy(np.stack([draw_image(rng, channels, height, width) for _ in range(number)]))

    return images


@pytest.fixture(scope="session")
def photographs():
    """Two real photographs, (2,3,427,640) float32."""
    load = pytest.importorskip("sklearn.datasets").load_sample_images
    pixels = np.stack(load().images)
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255


@pytest.fixture(scope="session")
def cifar(data_root):
    """The CIFAR-10 test images, uint8 (10000,3,32,32)."""
    path = data_root / "cifar-10-batches-bin" / "test_batch.bin"
    if not path.is_file():
        pytest.skip("CIFAR-10 in its binary version is not in LINOCUT_DATA")
    rows = np.fromfile(path, dtype=np.uint8).reshape(-1, 3073)
    return torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32).copy())


@pytest.fixture(params=["torch", "numba", "triton"])
def backend(request):
    """The name of each backend that can run here, beside the reference."""
    try:
        dispatch.backend(request.param, torch.device("cpu"))
    except InputError as error:
        pytest.skip(str(error))
    return request.param


@pytest.fixture
def one_thread():
    """One thread before and after the test."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
