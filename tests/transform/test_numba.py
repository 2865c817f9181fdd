"""The compiled CPU backend where it must hold up: in forked workers, under several threads, far from all centres."""

import errno
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from linocut.transform.kernels import dispatch, numpy_loop
from linocut.transform.modules import EssentialFeatures
from linocut.transform.settings import NO_BLUR, PaletteRule

numba = pytest.importorskip("numba")


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


OUTLIVING = """
import sys, threading, time, torch
from linocut.transform.modules import EssentialFeatures
torch.set_num_threads(2)
images, transform = torch.rand(8, 3, 32, 32), EssentialFeatures(backend="numba")
wanted = transform(images) if sys.argv[1] == "used" else None
def outlive():
    threading.main_thread().join()
    time.sleep(0.2)
    painted = transform(images)
    print(wanted is None or torch.equal(painted, wanted), flush=True)
threading.Thread(target=outlive).start()
"""


@pytest.mark.parametrize("pool", ["used", "new"])
def test_a_thread_that_outlives_the_main_one_can_still_transform(pool):
    done = subprocess.run([sys.executable, "-c", OUTLIVING, pool], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


def twice(x):
    return 2 * x


@pytest.fixture
def compile_twice(tmp_path, monkeypatch):
    """Compiles `twice` with its cache in tmp_path, as another process would; says what it came to and from where."""
    from linocut.transform.kernels.numba_compiled import compiled

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def call():
        loop = compiled(twice)
        return loop(4), "kept" if loop.stats.cache_hits else "compiled"

    return call


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [0, 5, 40])
def test_a_torn_cache_costs_one_compilation(tmp_path, compile_twice, ending, left):
    assert [compile_twice(), compile_twice()] == [(8, "compiled"), (8, "kept")]
    (file,) = tmp_path.rglob(f"*.{ending}")
    file.write_bytes(file.read_bytes()[:left])
    assert [compile_twice(), compile_twice()] == [(8, "compiled"), (8, "kept")]


def test_a_full_disk_keeps_no_loop_and_computes(tmp_path, compile_twice, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert [compile_twice(), compile_twice()] == [(8, "compiled"), (8, "compiled")]
    compile_twice()
    (index,) = tmp_path.rglob("*.nbi")
    index.write_bytes(b"")
    monkeypatch.setattr(os, "replace", full)  # so that the torn index stays as it is
    assert compile_twice() == (8, "compiled")


def test_a_numba_of_another_make_is_taken_as_it_is(monkeypatch):
    from linocut.transform.kernels import numba_compiled

    monkeypatch.setattr(numba, "njit", lambda **_: lambda function: function)
    assert numba_compiled.compiled(twice) is twice


def crowded_corners(seed):
    """An image (1, 3, 32, 32) of bins with crowds in far corners: blocks of pixels from which every centre is far."""
    rng = np.random.default_rng(seed)
    crowds = []
    while sum(len(crowd) for crowd in crowds) < 1024:
        cube, corner = 128 * rng.integers(0, 3, 3), rng.integers(0, 2, 3)
        spread = rng.integers(0, 16, (64 * int(rng.integers(1, 4)), 3))
        crowds.append(cube + np.where(corner, 127 - spread, spread))
    eighths = np.concatenate(crowds)[:1024].T.reshape(1, 3, 32, 32)
    return torch.from_numpy(eighths.astype(np.float32)) / 2040


@pytest.mark.parametrize("seed", [20, 91, 201, 5018, 18584])  # each went wrong with a step of the search left out
def test_pixels_far_from_every_center(seed):
    kernels = dispatch.backend("numba", torch.device("cpu"))
    y, _ = kernels.blur(crowded_corners(seed), NO_BLUR)
    rule = PaletteRule(separation=1)
    for ours, wanted in zip(kernels.find_palette(y, rule), numpy_loop.find_palette(y, rule), strict=True):
        assert torch.equal(ours, wanted)
