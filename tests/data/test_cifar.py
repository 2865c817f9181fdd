"""CIFAR-10 in its two official forms, and pickles that try to do more."""

import io
import pickle
import struct
from typing import ClassVar

import numpy as np
import pytest
import torch

from linocut.data import load
from linocut.errors import InputError


@pytest.fixture
def batches(random):
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    return {name: (random.integers(0, 256, (4, 3072), np.uint8), random.integers(0, 10, 4)) for name in names}


@pytest.fixture
def binary(tmp_path, batches):
    folder = tmp_path / "bin" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for name, (pixels, labels) in batches.items():
        records = np.concatenate([labels[:, None].astype(np.uint8), pixels], axis=1)
        (folder / f"{name}.bin").write_bytes(records.tobytes())
    return folder


class OldPickler(pickle._Pickler):
    """Writes bytes as the strings of Python 2, which made the official files."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_string(self, content):
        self.write(b"T" + struct.pack("<i", len(content)) + content)
        self.memoize(content)

    dispatch[bytes] = save_string


def official_pickle(content):
    stream = io.BytesIO()
    OldPickler(stream, protocol=2).dump(content)
    return stream.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def batch_content(pixels, labels):
    return {
        b"batch_label": b"training batch",
        b"labels": [int(l) for l in labels],
        b"data": pixels,
        b"filenames": [b"a.png"] * len(labels),
    }


@pytest.fixture
def pickled(tmp_path, batches):
    folder = tmp_path / "py" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for name, (pixels, labels) in batches.items():
        (folder / name).write_bytes(official_pickle(batch_content(pixels, labels)))
    return folder


def test_binary_batches_come_in_order(binary, batches):
    train, test = load("cifar-10", binary.parent), load("cifar-10", binary.parent, "test")
    assert train.pixels.shape == (20, 3, 32, 32)
    expected = np.concatenate([batches[f"data_batch_{i}"][0] for i in range(1, 6)]).reshape(20, 3, 32, 32)
    assert torch.equal(train.pixels, torch.from_numpy(expected))
    assert test.labels.tolist() == batches["test_batch"][1].tolist()


def test_pickles_hold_the_same_data_as_the_binary_batches(binary, pickled):
    for split in ("train", "test"):
        assert load("cifar-10", binary.parent, split).sha256 == load("cifar-10", pickled.parent, split).sha256


def test_the_binary_form_is_preferred(binary, pickled):
    pickled.rename(binary.parent / pickled.name)
    (binary.parent / pickled.name / "data_batch_1").write_bytes(b"no pickle")
    assert len(load("cifar-10", binary.parent)) == 20


@pytest.mark.parametrize("size", [0, 3072, 3074, 4 * 3073 - 1, 10_001 * 3073])
def test_a_binary_batch_of_another_size_is_refused(binary, size):
    with (binary / "data_batch_3.bin").open("r+b") as stream:
        stream.truncate(size)
    with pytest.raises(InputError, match=r"data_batch_3\.bin.*records"):
        load("cifar-10", binary.parent)


def test_a_missing_batch_and_a_wrong_label_are_named(binary):
    (binary / "data_batch_2.bin").rename(binary / "elsewhere")
    with pytest.raises(InputError, match="linocut data download cifar-10"):
        load("cifar-10", binary.parent)
    (binary / "elsewhere").rename(binary / "data_batch_2.bin")
    with (binary / "data_batch_2.bin").open("r+b") as stream:
        stream.write(b"\x0a")
    with pytest.raises(InputError, match="label of 10"):
        load("cifar-10", binary.parent)


class Payload:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def doubling(core):
    """A list of lists of lists ..., each of which holds the next one twice: short to write, endless to walk."""
    for _ in range(60):
        core = [core, core]
    return core


# A tuple of the same tuple twice, of the same tuple twice ..., left in the memo at 0.
DOUBLING_TUPLE = b"\x80\x02)q\x000" + b"h\x00h\x00\x86q\x000" * 60


def hostile(marker):
    """Pickles that would make the marker file, or take the memory, if anything in them ran."""
    command = f"open({str(marker)!r}, 'w').close()"
    array = np.zeros((4, 3072), np.uint8)
    labels = [0, 1, 2, 3]
    return {
        "exec": pickle.dumps(Payload(exec, command), protocol=2),
        "exec inside": pickle.dumps({b"data": Payload(exec, command), b"labels": labels}, protocol=2),
        "os.system": b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR.",
        "numpy's own loader": b"cnumpy\nload\n(S'" + str(marker).encode() + b"'\ntR.",
        "getattr on what is allowed": b"cbuiltins\ngetattr\n(cnumpy\ndtype\nS'__class__'\ntR.",
        "dotted name": b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__init__\x93.",
        "persistent id": b"Psomething\n.",
        "huge memo": b"\x80\x02}r\xff\xff\xff\xff.",
        "huge string": b"\x80\x04\x8e" + struct.pack("<Q", 2**60) + b"x.",
        "deep": b"\x80\x02" + b"(" * 100_000 + b".",
        "empty": b"",
        "no dict": pickle.dumps([1, 2], protocol=2),
        "python 3's own pickle": pickle.dumps({b"data": array, b"labels": labels}, protocol=5),
        "floats": official_pickle({b"data": array.astype(np.float32), b"labels": labels}),
        "objects": official_pickle({b"data": np.array([[exec]], dtype=object), b"labels": labels}),
        "too few labels": official_pickle({b"data": array, b"labels": labels[:2]}),
        "another width": official_pickle({b"data": array[:, :3000], b"labels": labels}),
        "text for labels": official_pickle({b"data": array, b"labels": [b"a", b"b", b"c", b"d"]}),
        "huge labels": official_pickle({b"data": array, b"labels": [10**9] * 4}),
        "a dtype that is built upon": b"\x80\x02cnumpy\ndtype\n}X\x01\x00\x00\x00aK\x01sb.",
        "a key that takes for ever to hash": DOUBLING_TUPLE + b"}h\x00K\x00s.",
        "labels that double": official_pickle({b"data": array, b"labels": doubling([0])}),
        "a dtype that takes for ever to print": DOUBLING_TUPLE
        + b"}U\x04datacnumpy.core.multiarray\n_reconstruct\n)R"
        + b"(K\x01K\x01K\x01\x86cnumpy\ndtype\nh\x00\x85RK\x00U\x00tbs.",
    }


@pytest.mark.parametrize("kind", hostile("x"))
def test_a_hostile_pickle_is_refused_and_nothing_in_it_runs(pickled, tmp_path, kind):
    marker = tmp_path / "ran"
    (pickled / "test_batch").write_bytes(hostile(marker)[kind])
    with pytest.raises(InputError, match="test_batch"):
        load("cifar-10", pickled.parent, "test")
    assert not marker.exists()


def test_the_payload_would_run_in_a_plain_unpickler(tmp_path):
    """The test above can fail: the same bytes do their work where nothing refuses them."""
    marker = tmp_path / "ran"
    pickle.loads(hostile(marker)["exec"])
    assert marker.exists()


def test_every_truncation_of_a_pickle_is_refused(pickled):
    whole = (pickled / "test_batch").read_bytes()
    for length in [*range(0, 200, 7), *range(200, len(whole), 1009)]:
        (pickled / "test_batch").write_bytes(whole[:length])
        with pytest.raises(InputError):
            load("cifar-10", pickled.parent, "test")
