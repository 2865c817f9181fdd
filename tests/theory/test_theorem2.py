import numpy as np
import pytest

from linocut.theory import theorem2
from linocut.theory.definitions import fixed_codebook


@pytest.fixture(scope="module")
def decided():
    return theorem2.decide()


def test_every_two_color_codebook_and_w_equals_the_formula(decided):
    assert decided.escapes.shape == (32_640, 255)
    w = np.arange(1, 256)
    m = ((decided.low + decided.high) // 2)[:, None]
    assert (decided.escapes == ((m >= 256 - w) & (m <= w - 2))).all()
    assert int(decided.escapes.sum()) == 2_755_392
    for off in ((255 - w, w - 2), (257 - w, w - 2), (256 - w, w - 1), (256 - w, w - 3)):
        assert (decided.escapes != ((m >= off[0]) & (m <= off[1]))).any()


def test_black_and_white_escapes_from_129_on(decided):
    assert decided.first_escape(0, 255) == 129
    row = decided.escapes[(decided.low == 0) & (decided.high == 255)][0]
    assert row.tolist() == [w >= 129 for w in range(1, 256)]
    assert not decided.escapes[:, :128].any()
    assert decided.first_escape(0, 1) is None


def test_the_decision_agrees_with_images_run_through_fc(decided, count):
    dice = np.random.default_rng(1)
    for i in dice.choice(len(decided.low), count(300, 5000), replace=False):
        C, w = (int(decided.low[i]), int(decided.high[i])), int(dice.integers(120, 256))
        colors = [c for c in range(256) if c + w <= 255 or c - w >= 0]
        literal = any(len({int(v) for v in fixed_codebook(np.array([c - 1, c, c + 1]), C)}) > 1 for c in colors)
        assert decided.escapes[i, w - 1] == (not literal)


def test_failing_images_of_codebooks_of_any_size_are_verified(count):
    dice = np.random.default_rng(2)
    built = 0
    for _ in range(count(400, 20_000)):
        C, w = dice.choice(256, size=dice.integers(2, 257), replace=False), int(dice.integers(1, 256))
        example = theorem2.failing_image(C, w)
        assert (example is None) == theorem2.escapes(C, w)
        if example is not None:
            built += 1
            assert theorem2.is_verified(C, w, example)
    assert built > 100


def test_verification_refuses_what_is_no_failing_image():
    good = theorem2.failing_image((0, 255), 128)
    assert theorem2.is_verified((0, 255), 128, good)
    assert not theorem2.is_verified((0, 255), 129, good)  # its colours are only 128 apart
    assert not theorem2.is_verified((0, 255), 128, good._replace(delta=0 * good.delta))
    assert not theorem2.is_verified((0, 254), 5, good._replace(image=good.image + np.array([[10], [0]])))


def test_the_border_must_lie_between_256_less_w_and_w_less_2():
    """Two-colour codebooks with a border at 55, 56, 198, 199 and w = 200: both ends of the interval, and one off."""
    assert [theorem2.escapes((m - 1, m + 1), 200) for m in (55, 56, 198, 199)] == [False, True, True, False]
    assert [theorem2.escapes((0, 255), w) for w in (128, 129)] == [False, True]


def test_one_color_always_escapes():
    assert theorem2.failing_image((77,), 5) is None
    assert theorem2.escapes((77,), 5)
