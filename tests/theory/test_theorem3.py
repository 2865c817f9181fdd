import numpy as np
import pytest

from linocut.theory import findings, theorem3
from linocut.theory.definitions import mnist_d, recolored, stretch_to_black_and_white, two_color_codebook


@pytest.fixture(scope="module")
def digits(drawn_digits):
    images, labels = drawn_digits(600, 0)
    return images[:, 0].numpy(), labels.numpy()


def test_restored_equals_s_after_ac(digits):
    for image in mnist_d(digits[0][:20]):
        x = recolored(image, 30, 40) + np.random.default_rng(0).integers(-2, 3, image.shape)
        literal = stretch_to_black_and_white(two_color_codebook(x)) == 255
        assert (theorem3.restored(x) == literal).all()


@pytest.mark.parametrize(
    ("w", "eps", "changes"),
    [(5, 1, False), (4, 1, True), (64, 15, False), (64, 16, True), (255, 63, False), (252, 63, True)],
)
def test_images_come_back_below_a_quarter_of_w_and_not_at_it(digits, w, eps, changes):
    dice = np.random.default_rng(0)
    for image in mnist_d(digits[0][:10]):
        found = theorem3.attack(image, 0, w, eps, 2000, dice)
        assert found.tried == 2006
        assert (found.failures > 0) == changes


def test_perturbations_are_within_eps_and_reach_it():
    white = np.array([[True, True, False], [False, True, False]])
    worst = theorem3.worst_perturbations(white, 7)
    assert worst.shape == (6, 2, 3)
    assert set(np.unique(worst)) == {-7, 7}


def test_robust_accuracy_equals_accuracy_on_mnist_d(digits, count):
    first, limit = findings.third_theorem(
        (digits[0][:400], digits[1][:400]),
        (digits[0][400:500], digits[1][400:500]),
        epochs=8,
        attacked=10,
        random=count(1000, 10_000),
    )
    assert first.holds
    assert limit.holds
    assert first.numbers["natural"] == first.numbers["robust"] > 90
    assert first.numbers["changed"] == 0
    assert first.numbers["tried"] == 3 * (100 * 6 + 10 * count(1000, 10_000))
    assert limit.numbers["changed"] == 300


@pytest.mark.full
def test_real_digits(data_root):
    data = pytest.importorskip("linocut.data")
    train, test = (data.load("mnist", data_root, split) for split in ("train", "test"))
    arrays = [(part.pixels[:, 0].numpy(), part.labels.numpy()) for part in (train, test)]
    first, limit = findings.third_theorem(*arrays)
    assert first.holds
    assert limit.holds
    assert first.numbers["natural"] >= 98
