"""The compiled CPU backend where it must hold up: in forked workers and under several threads."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from linocut.transform.modules import EssentialFeatures

pytest.importorskip("numba")


class Transformed(Dataset):
    """Images that a worker transforms one by one, with more than the one thread that torch gives it."""

    def __init__(self, images):
        self.images, self.transform = images, EssentialFeatures(backend="numba")

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        torch.set_num_threads(2)
        return self.transform(self.images[i : i + 1])[0]


@pytest.fixture
def two_threads(one_thread):
    torch.set_num_threads(2)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python's own, about a fork with threads around
def test_forked_workers_do_not_use_their_parents_threads(draw, two_threads):
    images = draw(1, 8)
    wanted = EssentialFeatures(backend="numba")(images)  # its threads are at work in the parent before the fork
    loader = DataLoader(Transformed(images), batch_size=2, num_workers=2, multiprocessing_context="fork", timeout=60)
    assert torch.equal(torch.cat(list(loader)), wanted)


def test_calls_from_several_threads(draw, two_threads):
    images, transform = draw(2, 24), EssentialFeatures(backend="numba")
    wanted = transform(images)
    with ThreadPoolExecutor(4) as pool:
        parts = pool.map(lambda i: transform(images[i : i + 3]), range(0, 24, 3))
        assert torch.equal(torch.cat(list(parts)), wanted)
