"""Images from .npz files: the usual spellings and layouts, and no pickles."""

import io
import pickle
import zipfile

import numpy as np
import pytest
import torch

from linocut.data import load
from linocut.errors import InputError


@pytest.fixture
def pixels(random):
    return random.integers(0, 256, (10, 6, 5, 3), np.uint8)


LABELS = np.arange(10) % 2


@pytest.mark.parametrize("names", [("x_train", "y_train"), ("train_images", "train_labels")])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "grey", "column of labels"])
def test_the_usual_spellings_and_layouts(tmp_path, pixels, names, layout):
    given = {"NHWC": pixels, "NCHW": pixels.transpose(0, 3, 1, 2), "grey": pixels[..., 0]}.get(layout, pixels)
    labels = LABELS[:, None] if layout == "column of labels" else LABELS
    np.savez(tmp_path / "a.npz", **{names[0]: given, names[1]: labels})
    images = load("npz", tmp_path / "a.npz")
    expected = pixels.transpose(0, 3, 1, 2)[:, : 1 if layout == "grey" else 3]
    assert torch.equal(images.pixels, torch.from_numpy(np.ascontiguousarray(expected)))
    assert images.labels.tolist() == LABELS.tolist()


def test_without_a_split_a_fifth_is_for_testing_and_classes_may_be_named(tmp_path, pixels):
    np.savez(tmp_path / "a.npz", images=pixels, labels=LABELS, classes=np.array(["left", "right"]))
    train, test = (load("npz", tmp_path / "a.npz", split) for split in ("train", "test"))
    assert (len(train), len(test), train.classes) == (8, 2, ("left", "right"))


def test_a_pickle_inside_is_refused_and_not_run(tmp_path):
    marker = tmp_path / "ran"

    class Payload:
        def __reduce__(self):
            return open, (str(marker), "w")

    np.savez(tmp_path / "a.npz", x_train=np.array([Payload()], dtype=object), y_train=np.array([0]))
    with pytest.raises(InputError, match="pickle"):
        load("npz", tmp_path / "a.npz")
    stream = io.BytesIO()
    pickle.dump(Payload(), stream)
    marker.unlink(missing_ok=True)
    (tmp_path / "b.npz").write_bytes(stream.getvalue())
    with pytest.raises(InputError, match=r"b\.npz"):
        load("npz", tmp_path / "b.npz")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"x_train": np.zeros((2, 4, 4)), "y_train": np.zeros(2, int)}, "uint8"),
        ({"x_train": np.zeros((2, 4, 4, 2), np.uint8), "y_train": np.zeros(2, int)}, "shape"),
        ({"x_train": np.zeros((2, 4, 4), np.uint8), "y_train": np.zeros(3, int)}, "as many"),
        ({"x_train": np.zeros((2, 4, 4), np.uint8), "y_train": np.zeros(2)}, "whole numbers"),
        ({"images": np.zeros((2, 4, 4), np.uint8), "labels": np.zeros(3, int)}, "as many"),
        ({"x_train": np.zeros((2, 4, 4), np.uint8), "y_train": np.array([0, -1])}, "labels must lie"),
        ({"something": np.zeros(2)}, "wanted x_train"),
        ({"images": np.zeros((2, 4, 4), np.uint8), "labels": np.array([0, 2_000_000_000])}, "labels below"),
        ({"images": np.zeros((2, 4, 4), np.uint8), "labels": np.array(3)}, "labels of shape"),
        ({"images": np.zeros((2, 4, 4), np.uint8), "labels": np.zeros((2, 3), int)}, "labels of shape"),
        (
            {"images": np.zeros((2, 4, 4), np.uint8), "labels": np.zeros(2, int), "classes": np.array("cat")},
            "list of names",
        ),
        ({"x_train": np.zeros((2, 0, 4), np.uint8), "y_train": np.zeros(2, int)}, "no pixels"),
    ],
)
def test_a_wrong_array_is_refused_with_a_reason(tmp_path, arrays, reason):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError, match=reason):
        load("npz", tmp_path / "a.npz")


def test_a_header_that_promises_too_much_and_a_missing_file_are_refused(tmp_path):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|u1", "fortran_order": False, "shape": (2**50, 28, 28)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x_train.npy", stream.getvalue())
        archive.writestr("y_train.npy", stream.getvalue())
    with pytest.raises(InputError, match=r"a\.npz"):
        load("npz", tmp_path / "a.npz")
    with pytest.raises(InputError, match="missing"):
        load("npz", tmp_path / "b.npz")


def test_an_archive_of_something_else_is_refused(tmp_path, pixels):
    with zipfile.ZipFile(tmp_path / "bytes.npz", "w") as archive:
        archive.writestr("x_train", b"no array")
        archive.writestr("y_train", b"no array")
    np.savez(tmp_path / "good.npz", images=pixels, labels=LABELS)
    np.save(tmp_path / "one.npy", pixels)
    both = (tmp_path / "one.npy").read_bytes() + (tmp_path / "good.npz").read_bytes()
    (tmp_path / "both.npz").write_bytes(both)
    for name in ("bytes.npz", "both.npz"):
        with pytest.raises(InputError, match=name):
            load("npz", tmp_path / name)


def test_the_images_of_the_other_split_are_not_read(tmp_path, pixels):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|u1", "fortran_order": False, "shape": (2**50, 28, 28)})
    np.savez(tmp_path / "a.npz", x_train=pixels, y_train=LABELS, y_test=np.array([5]))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("x_test.npy", stream.getvalue())
    assert len(load("npz", tmp_path / "a.npz").classes) == 6
