"""The real files, where they are present: official counts, and facts that only right pixels and labels have."""

import hashlib

import pytest
import torch

from linocut.data import load, survey
from linocut.data.catalogue import ENTRIES


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def present(data_root, name):
    if name not in survey.present(data_root):
        pytest.skip(f"real data: {data_root} holds no {name}")


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar-10"])
def test_sets_in_arrays_have_their_official_counts(data_root, name):
    present(data_root, name)
    for split, count in zip(("train", "test"), ENTRIES[name].images, strict=True):
        images = load(name, data_root, split)
        assert len(images) == count
        if name != "mnist":
            assert images.labels.bincount().tolist() == [count // 10] * 10
    assert all(survey.published_files(name, data_root).values())


def test_mnist_begins_with_its_known_labels_and_has_its_known_mean(data_root):
    present(data_root, "mnist")
    train = load("mnist", data_root)
    assert train.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert int(train.pixels.sum()) / train.pixels.numel() / 255 == pytest.approx(0.1307, abs=1e-4)


def test_cifar_10_has_its_known_channel_means(data_root):
    present(data_root, "cifar-10")
    images = load("cifar-10", data_root)
    means = images.pixels.sum((0, 2, 3)) / (255 * 50_000 * 32 * 32)
    assert torch.allclose(means, torch.tensor([0.4914, 0.4822, 0.4465]), atol=1e-4)


def test_gtsrb_counts_before_and_after_dropping(data_root, cache):
    present(data_root, "gtsrb")
    for split, subset, whole in (("train", 3921, 39_209), ("test", 1053, 12_630)):
        images = load("gtsrb", data_root, split, cache=cache)
        (note,) = (note for note in images.notes if "dropped" in note)
        dropped, total = int(note.split()[0]), int(note.split()[2])
        assert total in (subset, whole)
        assert len(images) == total - dropped
        assert images.pixels.float().mean((1, 2, 3)).min() >= 50
        assert set(images.labels.tolist()) <= set(range(43))


def test_imagenette_has_its_official_counts(data_root, cache):
    present(data_root, "imagenette")
    test = load("imagenette", data_root, "test", 64, cache=cache)
    assert len(test) == 3925
    assert test.labels.bincount().tolist() == [387, 395, 357, 386, 409, 394, 389, 419, 399, 390]
    from linocut.data.folders import plan_imagenette

    assert len(plan_imagenette(data_root, "train", 64).files) == 9469


def test_resisc45_is_split_without_loss(data_root, cache):
    present(data_root, "resisc45")
    halves = [load("resisc45", data_root, split, 256, cache=cache) for split in ("train", "test")]
    counts = [half.labels.bincount().tolist() for half in halves]
    assert [sum(pair) for pair in zip(*counts, strict=True)] in ([20, 20], [700] * 45)
    assert [test / (train + test) for train, test in zip(*counts, strict=True)] == [0.2] * len(counts[0])
    hashes = {hashlib.sha256(image.numpy().tobytes()).digest() for half in halves for image in half.pixels}
    assert len(hashes) >= 0.99 * sum(len(half) for half in halves)
