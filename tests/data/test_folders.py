"""Class folders: Imagenette's copies, RESISC45's missing split, anyone's own pictures."""

import os
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from linocut.data import load
from linocut.data.folders import IMAGENETTE
from linocut.errors import InputError


def test_imagenette_has_its_official_split_and_names(tmp_path, class_folders):
    class_folders(tmp_path / "imagenette2-160" / "train", dict.fromkeys(IMAGENETTE, 3), 160, ".JPEG")
    class_folders(tmp_path / "imagenette2-160" / "val", dict.fromkeys(IMAGENETTE, 1), 160, ".JPEG")
    train, test = load("imagenette", tmp_path), load("imagenette", tmp_path, "test", 64)
    assert train.pixels.shape == (30, 3, 160, 160)
    assert test.pixels.shape == (10, 3, 64, 64)
    assert train.classes[4] == "church"
    assert train.labels.tolist() == sorted([*range(10)] * 3)


@pytest.mark.parametrize(
    ("wanted", "chosen"), [(64, "112"), (112, "112"), (128, "160"), (224, "320"), (None, "320"), (400, "320")]
)
def test_the_smallest_copy_that_is_large_enough_is_used(tmp_path, class_folders, wanted, chosen):
    for size in (112, 160, 320):
        class_folders(tmp_path / f"imagenette2-{size}" / "train", {"n01440764": 1}, size, ".JPEG")
    images = load("imagenette", tmp_path, image_size=wanted)
    assert images.notes[0] == f"from imagenette2-{chosen}"
    assert images.pixels.shape[-1] == (wanted or 224)
    assert any("enlarged" in note for note in images.notes) == (wanted == 400)


def test_resisc45_is_split_by_class_without_overlap(tmp_path, class_folders):
    root = class_folders(tmp_path / "NWPU-RESISC45", {"airplane": 10, "sea_ice": 15}, 16, ".jpg").parent
    train, test = load("resisc45", root, "train", 16), load("resisc45", root, "test", 16)
    assert train.labels.bincount().tolist() == [8, 12]
    assert test.labels.bincount().tolist() == [2, 3]
    assert train.classes == ("airplane", "sea ice")
    everything = {image.numpy().tobytes() for images in (train, test) for image in images.pixels}
    assert len(everything) == 25
    assert "2 of 45 classes are present" in train.notes


def test_a_folder_with_its_own_split(tmp_path, class_folders):
    class_folders(tmp_path / "train", {"cat": 2, "dog": 3})
    class_folders(tmp_path / "val", {"cat": 1, "dog": 1})
    (tmp_path / "train" / "cat" / "notes.txt").write_text("not a picture")
    assert load("folder", tmp_path).labels.tolist() == [0, 0, 1, 1, 1]
    assert load("folder", tmp_path, "test").classes == ("cat", "dog")
    assert "1 files that are no images were left out" in load("folder", tmp_path).notes


def test_a_folder_whose_halves_differ_in_classes_is_refused(tmp_path, class_folders):
    class_folders(tmp_path / "train", {"cat": 2, "dog": 3})
    class_folders(tmp_path / "test", {"cat": 1, "cow": 1})
    with pytest.raises(InputError, match="cow"):
        load("folder", tmp_path, "test")


def test_a_folder_without_a_split_gets_one_by_seed(tmp_path, class_folders):
    class_folders(tmp_path, {"a": 10, "b": 5})
    first, again, other = (load("folder", tmp_path, "test", seed=seed) for seed in (0, 0, 1))
    assert first.sha256 == again.sha256 != other.sha256
    assert first.labels.bincount().tolist() == [2, 1]


@pytest.mark.parametrize("content", ["nothing", "empty class", "a file"])
def test_a_folder_without_pictures_is_refused(tmp_path, content):
    root = tmp_path / "root"
    if content == "a file":
        root.write_text("x")
    else:
        (root / "cat").mkdir(parents=True) if content == "empty class" else root.mkdir()
    with pytest.raises(InputError, match="class folders"):
        load("folder", root)


def test_pictures_that_are_no_squares_ask_for_a_size_and_are_cut_in_the_middle(tmp_path, write_picture):
    wide = np.zeros((20, 60, 3), np.uint8)
    wide[:, 20:40] = 255
    for i in range(5):
        write_picture(tmp_path / "a" / f"{i}.png", wide)
    with pytest.raises(InputError, match="image_size"):
        load("folder", tmp_path)
    assert load("folder", tmp_path, image_size=20).pixels.min() == 255
    assert load("folder", tmp_path, image_size=10).pixels.min() > 200


def test_every_pixel_of_a_lossless_picture_arrives(tmp_path, random, write_picture):
    kept = random.integers(0, 256, (5, 9, 9, 3), np.uint8)
    for i, pixels in enumerate(kept):
        write_picture(tmp_path / "a" / f"{i}{('.png', '.ppm', '.bmp')[i % 3]}", pixels)
    arrived = [load("folder", tmp_path, split).pixels for split in ("train", "test")]
    expected = {pixels.transpose(2, 0, 1).tobytes() for pixels in kept}
    assert {image.numpy().tobytes() for image in torch.cat(arrived)} == expected


def test_unusual_pictures_go_the_careful_way(tmp_path, write_picture):
    """16 bits are scaled and not clipped, transparency is laid on white, orientation is applied."""
    ramp = np.full((8, 8), 40_000, np.uint16)
    clear = np.zeros((8, 8, 4), np.uint8)
    turned = np.zeros((8, 8, 3), np.uint8)
    turned[:, :4] = 255
    exif = Image.Exif()
    exif[0x0112] = 6
    write_picture(tmp_path / "a" / "0.png", ramp)
    write_picture(tmp_path / "a" / "1.png", clear)
    write_picture(tmp_path / "a" / "2.jpg", turned, exif=exif, quality=100)
    from linocut.data.decoding import read_rgb

    read = [np.asarray(read_rgb(tmp_path / "a" / name)) for name in ("0.png", "1.png", "2.jpg")]
    assert set(read[0].ravel()) == {round(40_000 / 257)}
    assert set(read[1].ravel()) == {255}
    assert read[2][:4].mean() > 250 > 5 > read[2][4:].mean()


def test_both_splits_have_one_size_whichever_picture_comes_first(tmp_path, write_picture):
    for i in range(10):
        write_picture(tmp_path / "a" / f"{i}.png", np.full((8 + i, 8 + i, 3), i, np.uint8))
    assert {load("folder", tmp_path, split).pixels.shape[1:] for split in ("train", "test")} == {(3, 8, 8)}


@pytest.mark.parametrize("size", [None, 8])
def test_a_split_without_pictures_is_refused(tmp_path, class_folders, size):
    class_folders(tmp_path, {"a": 1, "b": 1})
    assert len(load("folder", tmp_path, "train", size)) == 2
    with pytest.raises(InputError, match="no image for 'test'"):
        load("folder", tmp_path, "test", size)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_no_unicode_are_read_and_shown(tmp_path, class_folders):
    class_folders(tmp_path, {"a": 5, os.fsdecode(b"caf\xe9"): 5})
    odd = tmp_path / "a" / "000.png"
    odd.rename(odd.with_name(os.fsdecode(b"\xe9.png")))
    images = load("folder", tmp_path)
    assert (len(images), images.classes) == (8, ("a", "caf\N{REPLACEMENT CHARACTER}"))


def test_every_kind_of_picture_that_can_be_read_counts(tmp_path, write_picture):
    for i, suffix in enumerate((".tif", ".GIF", ".jpe", ".webp", ".pnm")):
        write_picture(tmp_path / "a" / f"{i}{suffix}", np.full((8, 8, 3), 90, np.uint8))
    (tmp_path / "a" / "notes.txt").write_text("no picture")
    train, test = (load("folder", tmp_path, split) for split in ("train", "test"))
    assert len(train) + len(test) == 5
    assert "1 files that are no images were left out" in train.notes
