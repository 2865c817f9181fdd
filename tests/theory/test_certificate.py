import math
from fractions import Fraction

import pytest
import torch

from linocut.errors import InputError
from linocut.theory.attack import discretise
from linocut.theory.certificate import PARTS, binary_bounds, certify, parts_of_a_level, span_of

LEVELS = torch.arange(256)[None]


def test_fixed_codebook_is_undecided_within_eps_of_its_midpoint():
    found = certify(LEVELS, 76.5, (0, 255))
    assert found.undecided[0].nonzero().squeeze(1).tolist() == list(range(52, 205))
    assert found.low[0, 51]  # 51 + 76.5 = 127.5, and a tie goes low
    assert found.high[0, 205]  # but 204 - 76.5 = 127.5 goes low as well, so 204 is undecided


def test_adaptive_codebook_decides_black_and_white_below_85():
    ends = torch.tensor([[0, 255]])
    assert not certify(ends, 85 - Fraction(1, 1024), "adaptive").undecided.any()
    assert certify(ends, 85, "adaptive").undecided.any()
    assert certify(ends, 85.0001, "adaptive").undecided.any()


def test_zero_radius_leaves_nothing_undecided_and_is_the_codebook_itself():
    for codebook in ("adaptive", (0, 255), (30, 61)):
        found = certify(LEVELS, 0, codebook)
        assert not found.undecided.any()
        assert (found.high == discretise(LEVELS[None, None] * PARTS, codebook)[0, 0]).all()


def test_eps_is_rounded_up_to_a_1024th():
    assert parts_of_a_level(Fraction(3, 10) * 255) == parts_of_a_level(0.3 * 255) == 76.5 * 1024
    assert parts_of_a_level(1 / 3) == math.ceil(1024 / 3)
    for bad in (-1, 256, math.nan, math.inf):
        with pytest.raises(InputError):
            parts_of_a_level(bad)


@pytest.mark.parametrize("codebook", [(3, 3), (5, 2), (0, 256), "fixed"])
def test_other_codebooks_are_refused(codebook):
    with pytest.raises(InputError, match="codebook"):
        certify(LEVELS, 1, codebook)


def test_only_whole_levels_are_certified():
    for bad in (torch.rand(2, 2), torch.tensor([[0, 300]]), torch.zeros(0, dtype=torch.uint8)):
        with pytest.raises(InputError, match="whole levels"):
            certify(bad, 1, "adaptive")


def random_cases(n, seed):
    """Images of 3 x 3 levels in ranges of many widths, with perturbations that often touch the ball's corners."""
    dice = torch.Generator().manual_seed(seed)
    low = torch.randint(0, 200, (n, 1, 1, 1), generator=dice)
    wide = torch.randint(1, 56, (n, 1, 1, 1), generator=dice)
    images = (low + (torch.rand(n, 1, 3, 3, generator=dice) * (wide + 1)).long()).clamp_max(255)
    images[: n // 4] = torch.where(torch.rand(n // 4, 1, 3, 3, generator=dice) < 0.3, 0, images[: n // 4])
    images[: n // 4, 0, 0, 0] = 255
    return images, dice


@pytest.mark.parametrize("codebook", ["adaptive", (0, 255), (40, 121)])
@pytest.mark.parametrize("eps", [1, 3.25, 10.5, 60])
def test_no_perturbation_ever_leaves_the_certificate(codebook, eps, count):
    """Every attacked image lies between the bounds of ONE window of its span, and certain pixels never move."""
    images, dice = random_cases(count(400, 5000), 3)
    choice = span_of(images, eps, codebook)
    certain = [certify(image, eps, codebook) for image in images[:50]]
    radius = int(eps * PARTS)
    for kind in range(12):
        noise = torch.randint(-radius, radius + 1, images.shape, generator=dice)
        if kind % 3:
            noise = torch.where(torch.rand(images.shape, generator=dice) < 0.7, noise.sign() * radius, noise)
        if kind % 3 == 2:  # everything the same way: moves the midpoint most
            noise = noise.abs() * (1 if kind % 2 else -1)
        white = discretise((images * PARTS + noise).clamp(0, 255 * PARTS), codebook)
        inside = torch.zeros(len(images), dtype=torch.bool)
        for k in range(int((choice.first_max - choice.first_min).max()) + 1):
            first = torch.minimum(choice.first_min + k, choice.first_max)
            lower, upper = binary_bounds(images, first, choice.last(first))
            inside |= ((white >= lower) & (white <= upper)).flatten(1).all(1)
        assert inside.all()
        for image_white, found in zip(white, certain, strict=False):
            assert not image_white[found.low].any()
            assert image_white[found.high].all()


@pytest.mark.parametrize("codebook", ["adaptive", (0, 255)])
def test_undecided_pixels_are_undecided(codebook):
    """For each undecided level of a rich image some perturbation makes it black and some makes it white."""
    image = torch.arange(0, 256, 5).view(1, 1, 4, 13)
    eps = 20
    choice = span_of(image, eps, codebook)
    found = certify(image[0], eps, codebook).undecided[0].flatten()
    seen = {True: torch.zeros(52, dtype=torch.bool), False: torch.zeros(52, dtype=torch.bool)}
    for top_sinks in (False, True):
        for bottom_rises in (False, True):
            for up in (False, True):
                moved = image * PARTS + (eps if up else -eps) * PARTS
                moved[0, 0, 0, 0] = eps * PARTS if bottom_rises else 0
                moved[0, 0, 3, 12] = (255 - eps if top_sinks else 255) * PARTS
                moved = moved.clamp(int(moved[0, 0, 0, 0]), int(moved[0, 0, 3, 12]))
                white = discretise(moved, codebook).flatten()
                seen[True] |= white
                seen[False] |= ~white
    assert (found == (seen[True] & seen[False])).all()
    assert int(choice.first_max - choice.first_min) == (20 if codebook == "adaptive" else 0)
