"""Every number that `linocut theory` prints, held by a test that fails when it is off by one."""

import re

import pytest

from linocut.theory import findings


@pytest.fixture(scope="module")
def found():
    listed = [*findings.first_theorem(), *findings.second_theorem(300), findings.certificate_limit()]
    return {finding.name: finding for finding in listed}


def test_every_finding_holds(found):
    assert len(found) == 6
    assert all(finding.holds for finding in found.values())


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("theorem 1", {"pairs": 8256, "extremes": 33_899_840, "brute_force": 3**8 + 3**7 + 5**6 + 7**5}),
        ("theorem 1, limit", {"failing_images": 255}),
        ("theorem 1, inside 0..255", {"last_tight": 205, "first_failure_at_255": 85}),
        ("theorem 2", {"largest_w": 128, "codebooks": 32_640, "random_codebooks": 300}),
        ("theorem 2, limit", {"escaping_pairs": 2_755_392, "pairs": 8_323_200, "black_and_white_from": 129}),
        ("certificate, adaptive", {"levels": 85}),
    ],
)
def test_numbers_are_these(found, name, numbers):
    assert found[name].numbers == numbers
    text = findings.described(found[name]).replace(",", "")
    for value in numbers.values():
        assert re.search(rf"\b{value}\b", text), f"{value} is not said"


def test_shown_images_do_fail_and_fail_no_earlier(found):
    from linocut.theory.definitions import fixed_codebook, keeps_clusters_together, two_color_codebook

    def black_and_white(x):
        return fixed_codebook(x, (0, 255))

    for finding in found.values():
        if finding.example:
            T = black_and_white if finding.name == "theorem 2" else two_color_codebook
            image, delta, eps = finding.example
            assert not keeps_clusters_together(image, delta, T)
            assert keeps_clusters_together(image, delta.clip(-(eps - 1), eps - 1), T)


def test_a_finding_that_fails_says_so(found):
    from dataclasses import replace

    assert "DOES NOT HOLD" in findings.described(replace(found["theorem 1"], holds=False))
