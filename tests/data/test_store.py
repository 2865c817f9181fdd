"""The cache: one file, mapped, checked at every opening, never trusted and never half written."""

import errno
import os
import random as python_random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from linocut.data import folders, load, store
from linocut.data.plan import AHEAD, CHUNK, Plan, usable_cores
from linocut.files import beside


@pytest.fixture
def pictures(tmp_path, class_folders):
    return class_folders(tmp_path / "pictures", {"a": 40, "b": 60})


@pytest.fixture
def no_decoding(monkeypatch):
    """After this is called, decoding any file fails the test."""

    def forbid():
        monkeypatch.setattr(Plan, "batches", lambda *_: pytest.fail("the cache was not used"))

    return forbid


def cache_file(root):
    (path,) = (root / ".linocut-cache").glob("*.images")
    return path


def test_the_second_loading_maps_what_the_first_decoded(pictures, no_decoding):
    first = load("folder", pictures)
    no_decoding()
    second = load("folder", pictures)
    assert torch.equal(first.pixels, second.pixels)
    assert (first.sha256, first.notes, first.classes) == (second.sha256, second.notes, second.classes)
    assert first.sha256 == store.read(cache_file(pictures), key_of(cache_file(pictures))).sha256


def key_of(path):
    content = path.read_bytes()
    return content[content.rindex(b'"key": "') + 8 :][:64].decode()


def test_a_set_kept_nowhere_has_the_same_hash_and_leaves_no_file(pictures):
    kept = load("folder", pictures, cache=False)
    assert not (pictures / ".linocut-cache").exists()
    assert kept.sha256 == load("folder", pictures).sha256


def test_nothing_is_written_outside_the_given_cache(pictures, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    load("folder", pictures, cache=tmp_path / "kept")
    made = set(tmp_path.rglob("*")) - set(before)
    assert {path.parent for path in made} == {tmp_path, tmp_path / "kept"}
    assert len(made) == 2, "the folder and one file"


def test_writing_to_the_mapped_pixels_does_not_change_the_file(pictures):
    images = load("folder", pictures)
    content = cache_file(pictures).read_bytes()
    images.pixels[:] = 0
    assert cache_file(pictures).read_bytes() == content


@pytest.mark.parametrize("change", ["touch", "content", "new file", "label", "seed", "size"])
def test_another_source_or_setting_is_decoded_anew(pictures, class_folders, write_picture, change):
    first = load("folder", pictures)
    one = pictures / "a" / "000.png"
    if change == "touch":
        os.utime(one, ns=(0, 0))
    elif change == "content":
        write_picture(one, np.zeros((8, 8, 3), np.uint8))
    elif change == "new file":
        shutil.copy(one, pictures / "a" / "999.png")
    elif change == "label":
        (pictures / "a").rename(pictures / "c")
    second = load("folder", pictures, image_size=4 if change == "size" else None, seed=int(change == "seed"))
    assert len(list((pictures / ".linocut-cache").glob("*.images"))) == 2
    assert (first.sha256 == second.sha256) == (change == "touch")


def test_every_truncation_and_flipped_bit_is_found_and_mended(pictures, count):
    good = load("folder", pictures)
    path = cache_file(pictures)
    content, key = path.read_bytes(), key_of(path)
    dice = python_random.Random(3)
    lengths = [0, 1, 47, 48, len(content) // 2, len(content) - 33, len(content) - 1]
    damaged = [content[:n] for n in lengths] + [content + b"\0"]
    places = [*range(len(content) - 500, len(content)), *dice.choices(range(len(content)), k=count(100, 2000))]
    for place in places:
        damaged.append(content[:place] + bytes([content[place] ^ 1 << dice.randrange(8)]) + content[place + 1 :])
    for bad in damaged:
        path.write_bytes(bad)
        assert store.read(path, key) is None
    assert load("folder", pictures).sha256 == good.sha256
    assert path.read_bytes() == content


def test_a_cache_that_cannot_be_written_is_done_without(pictures, tmp_path):
    (tmp_path / "file").write_text("no folder")
    images = load("folder", pictures, cache=tmp_path / "file")
    assert images.sha256 == load("folder", pictures, cache=False).sha256
    assert any("not cached" in note for note in images.notes)


def test_a_full_disk_is_done_without_and_leaves_nothing(pictures, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    images = load("folder", pictures)
    assert any("No space left" in note for note in images.notes)
    assert not list((pictures / ".linocut-cache").iterdir())


def test_a_cache_can_be_read_by_whom_the_user_lets(pictures, tmp_path):
    load("folder", pictures)
    (tmp_path / "plain").touch()
    (made,) = (pictures / ".linocut-cache").iterdir()
    assert made.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_failure_on_the_way_leaves_no_file(tmp_path):
    def half():
        with beside(tmp_path / "x") as unfinished:
            unfinished.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert not list(tmp_path.iterdir())


def test_two_processes_at_once_agree(pictures):
    script = f"from linocut.data import load; print(load('folder', {str(pictures)!r}).sha256)"
    workers = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    hashes = {worker.communicate(timeout=100)[0].strip() for worker in workers}
    assert hashes == {load("folder", pictures, cache=False).sha256}
    assert [p.suffix for p in (pictures / ".linocut-cache").iterdir()] == [".images"]


def test_writers_that_overlap_leave_one_whole_file(pictures):
    """Both are half way when the other one ends: the worst order there is."""
    plan = folders.plan_folder(pictures, "train", None, 0)
    path, key = pictures / "x.images", plan.key()

    def write_another(done, total):
        if done == total:
            store.write(path, plan, key)
            assert store.read(path, key) is not None

    store.write(path, plan, key, write_another)
    assert store.read(path, key).sha256 == load("folder", pictures, cache=False).sha256
    assert not list(pictures.glob(".*"))


def test_a_moved_folder_keeps_its_cache(pictures, tmp_path, no_decoding):
    first = load("folder", pictures)
    pictures.rename(tmp_path / "moved")
    no_decoding()
    assert load("folder", tmp_path / "moved").sha256 == first.sha256


def test_the_pixels_are_mapped_and_not_read(pictures):
    if not Path("/proc/self/maps").exists():
        pytest.skip("this system does not tell what is mapped")
    images = load("folder", pictures)
    assert str(cache_file(pictures)) in Path("/proc/self/maps").read_text()
    assert torch.equal(images.unit([5]), images.pixels[5:6].float() / 255)


def test_decoding_waits_for_a_slow_disk_instead_of_filling_the_memory(tmp_path):
    decoded = []

    def decode(index):
        decoded.append(index)
        return np.zeros((3, 4, 4), np.uint8)

    made = Plan(
        name="x", split="train", classes=("a",), folder=tmp_path, files=(tmp_path,) * 4000, labels=(0,) * 4000,
        shape=(3, 4, 4), decode=decode, settings={},
    )  # fmt: skip
    batches = made.batches()
    next(batches)
    time.sleep(0.05)
    assert len(decoded) <= AHEAD * usable_cores() * CHUNK
    assert sum(len(labels) for _, labels in batches) == 4000 - CHUNK
    assert sorted(decoded) == list(range(4000))


def test_progress_ends_at_the_number_of_files_and_never_falls(pictures):
    seen = []
    load("folder", pictures, cache=False, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (80, 80)
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    "description",
    [
        b'{"key": "KEY", "shape": []}',
        b'{"key": "KEY", "shape": [1e999, 3, 8, 8]}',
        b'{"key": "KEY", "shape": [-1, -1, 1, 1]}',
        b"[" * 100_000,
        b"[]",
    ],
)
def test_a_forged_description_is_no_cache(tmp_path, description):
    text = description.replace(b"KEY", b"k" * 64)
    (tmp_path / "a.images").write_bytes(text + len(text).to_bytes(8, "little") + store.MARK + bytes(32))
    assert store.read(tmp_path / "a.images", "k" * 64) is None
