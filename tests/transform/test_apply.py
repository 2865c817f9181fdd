"""Images in, images out, without a tensor in sight."""

import numpy as np
import pytest
from PIL import Image

from linocut.errors import InputError
from linocut.transform import reference
from linocut.transform.apply import apply
from linocut.transform.modules import EssentialFeatures
from linocut.transform.settings import BlurRule, PaletteRule


def noise(*shape, seed=0):
    smooth = np.random.default_rng(seed).normal(0, 6, shape).cumsum(axis=-3 if len(shape) > 2 else 0)
    return np.clip(128 + smooth, 0, 255).astype(np.uint8)


def by_hand(pixels, blur, palette):
    """The reference on one (H,W,C) image, left as spec says: colour / 8, half to even."""
    y, _ = reference.adaptive_blur(8 * pixels.transpose(2, 0, 1).astype(np.int64), blur)
    painted, _ = reference.paint(y, reference.find_palette(y, palette).colors)
    return np.rint(painted / 8).astype(np.uint8).transpose(1, 2, 0)


RULES = EssentialFeatures().blur_rule, EssentialFeatures().palette_rule


@pytest.mark.parametrize("shape", [(40, 37, 3), (9, 12, 1), (1, 1, 3)])
def test_equals_the_reference_rounded_to_levels(shape):
    pixels = noise(*shape)
    assert np.array_equal(apply(pixels), by_hand(pixels, *RULES))


def test_halves_go_to_the_even_level():
    """Two pixels of 10 and 11 levels have the colour 10.5; 11 and 12 have 11.5."""
    settings = {"kernel_sizes": (1,), "edge_thresholds": ()}
    assert apply(np.array([[10, 11]], dtype=np.uint8), **settings).tolist() == [[10, 10]]
    assert apply(np.array([[11, 12]], dtype=np.uint8), **settings).tolist() == [[12, 12]]


def test_shapes_stay_and_the_input_is_untouched():
    for shape in [(5, 6), (5, 6, 1), (5, 6, 3), (2, 5, 6, 3), (0, 5, 6, 3)]:
        pixels = noise(*shape)
        pixels.setflags(write=False)
        out = apply(pixels)
        assert out.shape == shape
        assert out.dtype == np.uint8
        assert not np.shares_memory(out, pixels)


def test_a_batch_is_its_images_and_views_will_do():
    batch = noise(3, 16, 16, 3)
    assert np.array_equal(apply(batch), np.stack([apply(image) for image in batch]))
    turned = batch[0][::-1, ::-1]
    assert np.array_equal(apply(turned), apply(turned.copy()))


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_pillow_in_pillow_out(mode):
    pixels = noise(20, 30, 3) if mode == "RGB" else noise(20, 30)
    picture = Image.fromarray(pixels)
    out = apply(picture, preset="gtsrb")
    assert isinstance(out, Image.Image)
    assert (out.mode, out.size) == (mode, (30, 20))
    assert np.array_equal(np.asarray(out), apply(pixels, preset="gtsrb"))
    assert np.array_equal(np.asarray(picture), pixels)


def test_settings_go_before_the_preset():
    pixels = noise(28, 28, 1)
    blur = BlurRule.of((3, 1, 1), (20, 40))
    palette = PaletteRule(separation=round(8 * 2 * 255 * 0.3), at_least_two=True)
    assert np.array_equal(apply(pixels, preset="mnist", separation=2.0), by_hand(pixels, blur, palette))


def with_a_transparent_colour():
    image = Image.new("L", (4, 4))
    image.info["transparency"] = 0
    return image


@pytest.mark.parametrize(
    ("image", "hint"),
    [
        (np.zeros((4, 4, 3)), "multiply by 255"),
        (np.zeros((4, 4), dtype=np.uint16), "scale it"),
        (np.zeros((4, 4, 4), dtype=np.uint8), "drop alpha"),
        (np.zeros((3, 8, 9), dtype=np.uint8), "moveaxis"),
        (np.zeros((2, 1, 8, 9), dtype=np.uint8), "moveaxis"),
        (np.zeros((0, 4, 3), dtype=np.uint8), "got shape"),
        (np.zeros(4, dtype=np.uint8), "got shape"),
        (Image.new("RGBA", (4, 4)), "background"),
        (Image.new("I;16", (4, 4)), "divide its values by 257"),
        (Image.new("CMYK", (4, 4)), "convert"),
        (with_a_transparent_colour(), "transparent colour.*background"),
        ([[1, 2]], "builtins.list"),
    ],
)
def test_what_it_does_not_take(image, hint):
    with pytest.raises(InputError, match=hint):
        apply(image)


def test_wrong_settings_are_told():
    pixels = noise(4, 4)
    with pytest.raises(InputError, match="colours"):
        apply(pixels, colours=3)
    for device in ("gpu", "cuda:99"):
        with pytest.raises(InputError, match=f"the device {device} cannot be used here"):
            apply(pixels, device=device)
    with pytest.raises(InputError, match="give preset too"):
        apply(pixels, image_size=64)
