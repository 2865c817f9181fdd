"""IDX files: gzipped or plain, and every way in which one can be wrong."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from linocut.data import load, survey
from linocut.errors import InputError


@pytest.fixture
def lay_out(write_idx, random):
    """lay_out(folder, suffix): five training and three test images, and the arrays themselves."""

    def write(folder, suffix):
        kept = {}
        for split, prefix, count in (("train", "train", 5), ("test", "t10k", 3)):
            pixels = random.integers(0, 256, (count, 28, 28), np.uint8)
            labels = np.arange(count)
            write_idx(folder / f"{prefix}-images-idx3-ubyte{suffix}", pixels)
            write_idx(folder / f"{prefix}-labels-idx1-ubyte{suffix}", labels)
            kept[split] = pixels, labels
        return kept

    return write


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_every_pixel_and_label_arrives(tmp_path, lay_out, name, suffix, split):
    pixels, labels = lay_out(tmp_path / name, suffix)[split]
    images = load(name, tmp_path, split)
    assert torch.equal(images.pixels, torch.from_numpy(pixels)[:, None])
    assert images.labels.tolist() == labels.tolist()
    assert len(images.classes) == 10


def test_gzipped_and_plain_have_one_hash_and_another_pixel_has_another(tmp_path, write_idx, lay_out):
    pixels, labels = lay_out(tmp_path / "a" / "mnist", ".gz")["train"]
    write_idx(tmp_path / "b/mnist/train-images-idx3-ubyte", pixels)
    write_idx(tmp_path / "b/mnist/train-labels-idx1-ubyte", labels)
    first, second = load("mnist", tmp_path / "a"), load("mnist", tmp_path / "b")
    assert first.sha256 == second.sha256
    pixels[0, 0, 0] ^= 1
    write_idx(tmp_path / "b/mnist/train-images-idx3-ubyte", pixels)
    assert load("mnist", tmp_path / "b").sha256 != first.sha256


def test_the_folder_itself_may_be_the_root_but_never_another_sets(tmp_path, lay_out):
    lay_out(tmp_path / "mnist", ".gz")
    assert len(load("mnist", tmp_path / "mnist")) == 5
    with pytest.raises(InputError, match="fashion-mnist"):
        load("fashion-mnist", tmp_path / "mnist")


def test_a_folder_is_known_by_its_whole_name_and_a_dot_by_what_it_stands_for(tmp_path, lay_out, monkeypatch):
    lay_out(tmp_path / "MNIST/raw", "")
    lay_out(tmp_path / "other/raw", "")
    assert survey.present(tmp_path / "MNIST/raw") == survey.present(tmp_path) == ["mnist"]
    assert survey.present(tmp_path / "other/raw") == ["folder"]
    monkeypatch.chdir(tmp_path / "MNIST/raw")
    assert survey.present(Path(".")) == ["mnist"]
    assert len(load("mnist", ".")) == 5


def test_only_files_that_lie_there_as_published_are_held_against_their_hash(tmp_path, lay_out):
    lay_out(tmp_path / "mnist", "")
    assert survey.published_files("mnist", tmp_path) == {}
    lay_out(tmp_path / "mnist", ".gz")
    assert set(survey.published_files("mnist", tmp_path).values()) == {False}


def test_a_missing_file_is_named_with_its_place_and_the_command_that_fetches_it(tmp_path, lay_out):
    lay_out(tmp_path / "mnist", ".gz")
    (tmp_path / "mnist/t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(InputError) as caught:
        load("mnist", tmp_path, "test")
    assert str(tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz") in str(caught.value)
    assert f"linocut data download mnist --root {tmp_path}" in str(caught.value)


def corruptions():
    return {
        "cut short": lambda b: b[:-1],
        "one byte too many": lambda b: b + b"\0",
        "wrong mark": lambda b: b"\0\0\x0d\x03" + b[4:],
        "half a header": lambda b: b[:9],
        "empty": lambda b: b"",
        "a promise of four billion images": lambda b: b[:4] + b"\xff" * 12 + b[16:],
    }


@pytest.mark.parametrize("kind", corruptions())
@pytest.mark.parametrize("packed", [False, True])
def test_a_damaged_file_is_refused_by_name(tmp_path, lay_out, kind, packed):
    lay_out(tmp_path / "mnist", "")
    path = tmp_path / "mnist/train-images-idx3-ubyte"
    content = corruptions()[kind](path.read_bytes())
    path.unlink()
    path = path.with_name(path.name + ".gz") if packed else path
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InputError, match="train-images-idx3-ubyte"):
        load("mnist", tmp_path)


def test_truncated_and_garbled_gzip_streams_are_refused(tmp_path, lay_out):
    lay_out(tmp_path / "mnist", ".gz")
    path = tmp_path / "mnist/train-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            load("mnist", tmp_path)
    path.write_bytes(whole[:100] + bytes(b ^ 255 for b in whole[100:200]) + whole[200:])
    with pytest.raises(InputError):
        load("mnist", tmp_path)


def test_labels_that_do_not_fit_are_refused(tmp_path, write_idx, lay_out):
    lay_out(tmp_path / "mnist", "")
    write_idx(tmp_path / "mnist/train-labels-idx1-ubyte", np.arange(4))
    with pytest.raises(InputError, match="as many of each"):
        load("mnist", tmp_path)
    write_idx(tmp_path / "mnist/train-labels-idx1-ubyte", np.array([0, 1, 2, 3, 10]))
    with pytest.raises(InputError, match=r"0\.\.9"):
        load("mnist", tmp_path)
