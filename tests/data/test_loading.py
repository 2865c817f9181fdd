"""load's own promises: names, splits, devices, unit values, and no network."""

import shlex
import socket

import numpy as np
import pytest
import torch

from linocut.data import Images, load
from linocut.errors import InputError


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"name": "imagenet"}, "there are mnist"),
        ({"name": "mnist"}, "needs root"),
        ({"name": "digits", "split": "val"}, "'test'"),
        ({"name": "digits", "image_size": 0}, "image_size"),
        ({"name": "digits", "image_size": 10**6}, "image_size"),
        ({"name": "digits", "image_size": 28.0}, "image_size"),
        ({"name": "digits", "image_size": "28"}, "image_size"),
        ({"name": "digits", "device": "nowhere"}, "device 'nowhere'"),
    ],
)
def test_a_wrong_argument_is_refused_with_a_reason(arguments, reason, monkeypatch):
    monkeypatch.delenv("LINOCUT_DATA", raising=False)
    with pytest.raises(InputError, match=reason):
        load(**arguments)


def test_the_environment_names_the_folder_of_data_sets_but_not_a_folder_of_pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("LINOCUT_DATA", str(tmp_path / "named"))
    with pytest.raises(InputError, match=f"download mnist --root {tmp_path / 'named'}"):
        load("mnist")
    with pytest.raises(InputError, match=f"download mnist --root {tmp_path / 'given'}"):
        load("mnist", tmp_path / "given")
    with pytest.raises(InputError, match="folder needs root"):
        load("folder")
    monkeypatch.setenv("LINOCUT_DATA", "")
    with pytest.raises(InputError, match="mnist needs root"):
        load("mnist")


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar-10", "gtsrb", "resisc45", "imagenette"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_an_empty_root_names_the_command_that_fetches_and_fetches_nothing(tmp_path, monkeypatch, name, split):
    monkeypatch.setattr(socket, "socket", lambda *_: pytest.fail("a socket was made"))
    with pytest.raises(InputError, match=f"linocut data download {name} --root") as caught:
        load(name, tmp_path, split)
    assert str(tmp_path) in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_size_that_the_files_fix_cannot_be_changed(tmp_path, write_idx, random):
    for prefix in ("train", "t10k"):
        write_idx(tmp_path / f"mnist/{prefix}-images-idx3-ubyte", random.integers(0, 256, (2, 28, 28)))
        write_idx(tmp_path / f"mnist/{prefix}-labels-idx1-ubyte", random.integers(0, 10, 2))
    assert len(load("mnist", tmp_path, image_size=28)) == 2
    with pytest.raises(InputError, match="28x28"):
        load("mnist", tmp_path, image_size=32)


def test_unit_values_are_exact_and_indexed_like_the_pixels():
    images = load("digits", split="test")
    unit = images.unit([3, 1])
    assert unit.dtype == torch.float32
    assert torch.equal(unit, images.pixels[[3, 1]].float() / 255)
    assert images.unit(5).shape == (1, 28, 28)
    assert images.unit(torch.tensor([0, 2])).shape == (2, 1, 28, 28)
    assert images.unit(slice(0, 4)).shape == images.unit()[:4].shape
    assert images.pixels.dtype == torch.uint8


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_device_gets_the_pixels_and_the_labels(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    images, here = load("digits", split="test", device=device), load("digits", split="test")
    assert images.pixels.device.type == images.labels.device.type == images.unit(0).device.type == device
    assert torch.equal(images.pixels.cpu(), here.pixels)
    assert images.sha256 == here.sha256


def test_images_refuse_what_they_cannot_hold():
    good = {
        "pixels": torch.zeros(2, 1, 4, 4, dtype=torch.uint8), "labels": torch.tensor([0, 1]),
        "classes": ("a", "b"), "name": "mine", "split": "test", "sha256": "",
    }  # fmt: skip
    assert len(Images(**good)) == 2
    for wrong in (
        {"pixels": torch.zeros(2, 1, 4, 4)},
        {"pixels": torch.zeros(2, 4, 4, dtype=torch.uint8)},
        {"labels": torch.tensor([0])},
        {"labels": torch.tensor([0, 2])},
        {"labels": torch.tensor([-1, 0])},
        {"labels": torch.tensor([0.0, 1.0])},
    ):
        with pytest.raises(InputError):
            Images(**good | wrong)


def test_the_command_that_fetches_can_be_copied_from_a_folder_with_spaces(tmp_path):
    with pytest.raises(InputError) as caught:
        load("mnist", tmp_path / "my data")
    words = shlex.split(str(caught.value).rpartition("fetch them with: ")[2])
    assert words == ["linocut", "data", "download", "mnist", "--root", str(tmp_path / "my data")]


def test_a_file_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    (folder / "test_batch.bin").write_bytes(bytes(3073))

    def forbidden(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(np, "fromfile", forbidden)
    with pytest.raises(InputError, match=r"test_batch\.bin \(Permission denied"):
        load("cifar-10", tmp_path, "test")
