"""Thumbnail, separation and painting: what every palette must satisfy."""

import cv2
import numpy as np
import pytest
import torch

from linocut.transform import reference
from linocut.transform.kernels import torch_ops, torch_palette
from linocut.transform.kernels.dispatch import backend
from linocut.transform.modules import AdaptiveCodebook, EssentialFeatures
from linocut.transform.settings import NO_BLUR, PaletteRule


def rule(eps=8 / 255, **changes):
    defaults = {
        "separation": 3.0,
        "bin_levels": 16,
        "thumbnail_size": 32,
        "lloyd_steps": 20,
        "order": "population",
        "at_least_two": False,
    }
    return PaletteRule.of(eps=eps, **{**defaults, **changes})


@pytest.mark.parametrize(
    ("height", "width"),
    [(33, 33), (100, 100), (160, 160), (224, 224), (256, 256), (257, 129), (129, 257), (5, 700), (700, 5), (31, 32)],
)
def test_thumbnail_is_opencvs_area_interpolation(height, width):
    y = np.random.default_rng(height).integers(0, 2041, (3, height, width))
    small = reference.thumbnail(y, 32)
    size = (min(width, 32), min(height, 32))
    theirs = cv2.resize(np.moveaxis(y, 0, 2).astype(np.float64), size, interpolation=cv2.INTER_AREA)
    assert small.shape == (3, size[1], size[0])
    assert np.abs(np.moveaxis(small, 0, 2) - theirs).max() <= 0.5 + 1e-3
    np.testing.assert_array_equal(torch_palette.thumbnail(torch.from_numpy(y)[None], 32)[0].numpy(), small)


def test_thumbnail_of_a_large_white_image_does_not_overflow():
    white = torch.full((1, 1, 1600, 900), 2040, dtype=torch.int16)
    assert torch_palette.thumbnail(white, 32).eq(2040).all()


def closest_pair(colors):
    distance = (colors[:, None] - colors[None]).square().sum(2)
    distance.fill_diagonal_(2**40)
    return int(distance.min())


@pytest.mark.parametrize("eps", [8 / 255, 0.1, 0.3])
@pytest.mark.parametrize("order", ["population", "bins"])
def test_kept_colors_are_far_apart(draw, count, eps, order):
    """count(1000, 10000) palettes over these six settings and the two of the next test."""
    palette_rule = rule(eps, order=order)
    images = draw(order == "bins", count(125, 1250), 3, 10, 12)
    y, _ = torch_ops.blur(images, NO_BLUR)
    colors, population, num_colors = torch_ops.find_palette(y, palette_rule)
    for c, n in zip(colors.long(), num_colors.tolist(), strict=True):
        assert n >= 1
        assert n == 1 or closest_pair(c[:n]) >= palette_rule.separation**2
        assert not c[n:].any()
    assert population.sum(1).le(120).all()


@pytest.mark.parametrize("channels", [1, 3])
def test_two_colors_are_kept_where_two_clusters_are(draw, count, channels):
    palette_rule = rule(0.3, at_least_two=True)
    images = draw(7, count(125, 1250), channels, 10, 12)
    y, _ = torch_ops.blur(images, NO_BLUR)
    colors, population, num_colors = torch_ops.find_palette(y, palette_rule)
    plain = rule(0.3)
    fallbacks = 0
    for i, n in enumerate(num_colors.tolist()):
        pixels = y[i].flatten(1).T.numpy().astype(np.int64)
        centers, members = reference.lloyd(pixels, reference.occupied_bins(pixels, 16), 20)
        filled = centers[members > 0]
        assert (n == 1) == (len(filled) == 1)
        if n > 1 and closest_pair(colors[i, :n].long()) < palette_rule.separation**2:
            fallbacks += 1
            assert n == 2
            largest = reference.squared_distances(filled, filled).max()
            assert closest_pair(colors[i, :n].long()) == largest < plain.separation**2
    assert fallbacks > 0
    assert population.ge(0).all()


def test_farthest_pair_is_two_clusters_even_of_one_color():
    centers, population = np.array([[80], [80]]), np.array([3, 4])
    assert reference.separate(centers, population, rule(0.3, at_least_two=True)).tolist() == [0, 1]


def test_dropped_colors_lie_near_a_kept_one(draw, count):
    for image in draw(3, count(60, 600)):
        pixels = reference.enter(image.numpy()).reshape(3, -1).T
        palette_rule = rule()
        centers, population = reference.lloyd(pixels, reference.occupied_bins(pixels, 16), 20)
        kept = reference.separate(centers, population, palette_rule)
        dropped = np.setdiff1d(np.flatnonzero(population), kept)
        near = reference.squared_distances(centers[dropped], centers[kept]) < palette_rule.separation**2
        assert near.any(axis=1).all()


def test_order_of_acceptance(draw):
    for image in draw(4, 20):
        y = reference.enter(image.numpy())
        by_population = reference.find_palette(y, rule())
        assert (np.diff(by_population.population) <= 0).all()
        by_bins = reference.find_palette(y, rule(order="bins", lloyd_steps=0)).colors
        assert [tuple(c) for c in by_bins] == sorted(tuple(c) for c in by_bins)


@pytest.mark.parametrize("transform", [EssentialFeatures, AdaptiveCodebook])
def test_every_pixel_has_a_nearest_color(photographs, draw, transform):
    for x in (photographs[:, :, 100:228, 200:360], draw(5, 12), draw(6, 12, channels=1)):
        for e in transform(backend="torch").explain(x):
            palette = (e.palette * 2040).round().long()
            pixels = (e.blurred * 2040).round().long().flatten(1).T
            distance = (pixels[:, None] - palette[None]).square().sum(2)
            labels = e.labels.flatten()
            assert torch.equal(distance.argmin(1), labels)  # of equals the first
            assert torch.equal(e.palette[labels].T.reshape(e.output.shape), e.output)


def test_painting_twice_with_one_palette_is_painting_once(draw):
    x = draw(8, 24)
    painted = AdaptiveCodebook(backend="torch")(x)
    y, _ = torch_ops.blur(x, NO_BLUR)
    colors, _, num_colors = torch_ops.find_palette(y, rule())
    again, _ = torch_ops.blur(painted, NO_BLUR)
    assert torch.equal(torch_ops.paint(again, colors, num_colors), painted)


def test_full_transform_is_not_idempotent():
    """Kept on purpose: who needs T(T(x)) = T(x) has to freeze the palette and leave out the blur."""
    x = torch.tensor([[[[37, 235, 140], [72, 255, 137]]]]) / 255
    transform = EssentialFeatures(backend="reference")
    once = transform(x)
    assert torch.equal(once * 255, torch.tensor([[[[160.25, 235, 160.25], [160.25, 235, 160.25]]]]))
    assert not torch.equal(transform(once), once)


@pytest.mark.parametrize("turn", [lambda x: x.flip(2), lambda x: x.flip(3), lambda x: x.transpose(2, 3)])
def test_flips_and_transposition_commute_with_the_transform(draw, photographs, turn):
    transform = EssentialFeatures(kernel_sizes=(7, 3, 1), backend="torch")
    for x in (draw(9, 30), draw(10, 6, 1, 41, 57), photographs[:1, :, :200, :333]):
        assert torch.equal(transform(turn(x)), turn(transform(x)))


@pytest.mark.parametrize("name", ["torch", "numba"])
def test_sums_of_very_tall_images_do_not_overflow(name):
    white = torch.full((1, 1, 1_100_000, 1), 2040, dtype=torch.int16)
    run = backend(name, white.device)
    colors, _, number = run.find_palette(white, PaletteRule(separation=0))
    assert number.tolist() == [1]
    assert colors[0, 0].tolist() == [2040]
