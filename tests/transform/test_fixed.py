"""The fixed codebook's builders against brute force, and what they refuse."""

import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from linocut.errors import InputError
from linocut.transform import fixed, medoids
from linocut.transform.histogram import ColorHistogram
from linocut.transform.modules import FixedCodebook


def brute_force(pixels, k, r):
    """The spec word for word, with none of the package's code: count, take the most frequent, remove, repeat."""
    packed = sum(channel.numpy().ravel().astype(np.uint32) << 8 * i for i, channel in enumerate(pixels.unbind(1)))
    packed, first, counts = np.unique(packed, return_index=True, return_counts=True)
    colors = np.stack([packed >> 8 * i & 255 for i in range(pixels.shape[1])], axis=1)
    codes = []
    while len(codes) < k and len(colors):
        most = np.flatnonzero(counts == counts.max())
        code = colors[most[first[most].argmin()]]
        codes.append(code.tolist())
        kept = np.abs(colors.astype(int) - code.astype(int)).max(axis=1) > r
        colors, first, counts = colors[kept], first[kept], counts[kept]
    return codes


def noise(seed, *shape, low=0, high=256):
    return torch.from_numpy(np.random.default_rng(seed).integers(low, high, shape, dtype=np.uint8))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("k", "r"), [(1, 0), (5, 0), (20, 3), (512, 16), (512, 40), (7, 255)])
def test_density_equals_brute_force(channels, k, r):
    for seed, high in ((1, 256), (2, 12)):  # few levels: many ties, and colours run out
        pixels = noise(seed, 6, channels, 9, 11, high=high)
        assert FixedCodebook.fit(pixels, k, r).settings()["colors"] == brute_force(pixels, k, r)


@pytest.mark.parametrize(("name", "k", "r"), [("mnist", 2, 153), ("fashion-mnist", 2, 153), ("cifar-10", 300, 16)])
def test_density_equals_brute_force_on_real_data(name, k, r, data_root, count):
    from linocut.data import load

    try:
        images = load(name, data_root, "train")
    except InputError as reason:
        pytest.skip(f"real data: {reason}")
    pixels = images.pixels[: count(200, len(images))]
    assert FixedCodebook.fit(pixels, k, r).settings()["colors"] == brute_force(pixels, k, r)


def test_ties_go_to_the_colour_seen_first():
    pixels = torch.tensor([[9, 5, 7, 7, 5, 9, 3]], dtype=torch.uint8).view(1, 1, 1, 7)
    assert FixedCodebook.fit(pixels, 4, 0).settings()["colors"] == [[9], [5], [7], [3]]
    twice = torch.cat([pixels.flip(3), pixels])
    assert FixedCodebook.fit(twice, 2, 0).settings()["colors"] == [[9], [5]]


def test_fewer_codes_where_no_colour_is_left():
    pixels = noise(3, 4, 3, 8, 8)
    assert len(FixedCodebook.fit(pixels, 500, 100).codes) < 20
    assert len(FixedCodebook.fit(pixels, 500, 255).codes) == 1


def test_histogram_is_exact_and_does_not_depend_on_batches(monkeypatch):
    pixels = noise(4, 40, 3, 5, 7, high=9)
    whole = ColorHistogram(3)
    whole.add(pixels)
    parts = ColorHistogram(3)
    monkeypatch.setattr("linocut.transform.histogram.AT_ONCE", 80)
    for part in pixels.split(7):
        parts.add(part)
    parts.add(pixels[:0])
    colors, counts = whole.table()
    assert all((a == b).all() for a, b in zip(whole.table(), parts.table(), strict=True))
    rows = pixels.permute(0, 2, 3, 1).reshape(-1, 3).numpy()
    assert counts.sum() == len(rows)
    for i in (0, 17, len(colors) - 1):
        assert counts[i] == (rows == colors[i]).all(axis=1).sum()


def test_populations_count_every_pixel_at_its_code(cifar):
    book = FixedCodebook.fit(cifar[:40], 50, 16)
    painted = (book(cifar[:40].float() / 255) * 255).round().to(torch.int64).permute(0, 2, 3, 1).reshape(-1, 3)
    held = [(painted == torch.tensor(color)).all(dim=1).sum().item() for color in book.settings()["colors"]]
    assert book.settings()["origin"]["population"] == held
    assert sum(held) == 40 * 1024


def test_test_images_are_refused_and_training_images_recorded():
    pixels = noise(5, 3, 1, 4, 4)
    images = SimpleNamespace(pixels=pixels, split="train", name="mine", sha256="abc")
    origin = FixedCodebook.fit(images, 2, 10).settings()["origin"]
    assert (origin["sha256"], origin["data"], origin["split"], origin["images"]) == ("abc", "mine", "train", 3)
    images.split = "test"
    with pytest.raises(InputError, match="must not see test images"):
        FixedCodebook.fit(images, 2, 10)
    bare = [FixedCodebook.fit(p, 2, 10).settings()["origin"] for p in (pixels, pixels.clone(), pixels.flip(0))]
    assert bare[0]["split"] is None
    assert bare[0]["sha256"] == bare[1]["sha256"] != bare[2]["sha256"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": 0},
        {"k": 513},
        {"k": 2.5},
        {"k": True},
        {"k": None},
        {"k": "2"},
        {"r": "16"},
        {"r": None},
        {"r": -1},
        {"r": float("nan")},
        {"r": 256},
        {"builder": "random"},
        {"images": torch.zeros(1, 1, 4, 4)},
        {"images": torch.zeros(0, 1, 4, 4, dtype=torch.uint8)},
        {"images": torch.zeros(1, 2, 4, 4, dtype=torch.uint8)},
        {"images": np.zeros((1, 1, 4, 4), dtype=np.uint8)},
        {"builder": "medoids", "sample": 0},
        {"builder": "medoids", "seed": -1},
        {"builder": "medoids", "seed": None},
        {"builder": "medoids", "sample": "9"},
    ],
)
def test_impossible_fits_are_refused(arguments):
    with pytest.raises(InputError):
        FixedCodebook.fit(**{"images": noise(6, 2, 1, 4, 4), "k": 2, **arguments})


def test_medoids_are_medoids():
    """Every code is the member of its cluster with the least sum of distances, which is computed in full here."""
    pixels = noise(7, 5, 3, 16, 16, high=40)
    book = FixedCodebook.fit(pixels, 8, builder="medoids", sample=600, seed=3)
    again = FixedCodebook.fit(pixels, 8, builder="medoids", sample=600, seed=3)
    assert again.settings() == book.settings()
    codes = np.array(book.settings()["colors"])
    sample = medoids.sample_pixels(pixels, 600, np.random.default_rng(3)).astype(int)
    apart = np.abs(sample[:, None] - codes[None]).sum(axis=2)
    least = apart.min(axis=1)
    for k in range(len(codes)):
        members = sample[(apart[:, k] == least) & (apart.argmin(axis=1) == k)]
        costs = np.abs(members[:, None] - members[None]).sum(axis=(1, 2))
        own = np.abs(members - codes[k]).sum()
        assert own <= costs.min() * 1.02  # ties at cluster borders fall differently in population order
    random = np.abs(sample[:, None] - sample[None, :8]).sum(axis=2).min(axis=1)
    assert least.sum() < random.sum()


def test_medoids_of_few_colours_are_these_colours():
    pixels = torch.tensor([[10, 10, 200, 90, 10, 90]], dtype=torch.uint8).view(1, 1, 2, 3)
    book = FixedCodebook.fit(pixels, 5, builder="medoids", sample=400)
    assert book.settings()["colors"] == [[10], [90], [200]]


def test_grey_levels_reduce_the_depth_of_every_channel():
    x = noise(8, 2, 3, 6, 6).float() / 255
    assert fixed.grey_levels(2).tolist() == [[0], [255]]
    assert torch.equal(FixedCodebook.depth(256)(x), x)
    wanted = torch.from_numpy(np.rint(np.rint(x.numpy() * 3) * 85) / np.float32(255)).float()
    assert torch.equal(FixedCodebook.depth(4)(x), wanted)
    for bad in (1, 257, 2.5, True):
        with pytest.raises(InputError):
            FixedCodebook.depth(bad)


def test_separations():
    assert fixed.separations(np.array([[0, 0, 0], [10, 40, 3], [10, 41, 3]])).tolist() == [40, 1, 1]
    assert fixed.separations(np.array([[7]])).tolist() == [np.inf]


def test_separations_of_thousands_of_colours_stay_in_little_memory(monkeypatch):
    """A picture painted channel by channel can have so many: all distances at once would be 9 million numbers."""
    packed = np.random.default_rng(9).choice(2041**3, 3000, replace=False)
    colors = np.stack([packed // 2041**i % 2041 for i in range(3)], axis=1) / 8
    wanted = [np.delete(np.abs(colors - color).max(axis=1), i).min() for i, color in enumerate(colors)]
    monkeypatch.setattr(fixed, "AT_ONCE", 2**15)
    tracemalloc.start()
    try:
        found = fixed.separations(colors)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.tolist() == wanted
    assert most < 2**20


@pytest.mark.full
def test_cifar_is_counted_in_seconds(data_root):
    from linocut.data import load

    images = load("cifar-10", data_root, "train")
    FixedCodebook.fit(images.pixels[:2], 2)
    start = time.perf_counter()
    FixedCodebook.fit(images, 300, 16)
    assert time.perf_counter() - start < 15  # about 3 s on two idle cores; others may be at work here
