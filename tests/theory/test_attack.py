import torch

from linocut.theory.attack import attack, discretise, reach
from linocut.theory.certificate import PARTS


def test_perturbed_images_stay_in_the_ball_and_the_box(proven_network, drawn_digits):
    codebook, network = proven_network
    images, labels = drawn_digits(100, 1)
    for eps in (10, 60, 120.3):
        found = attack(network, images, labels, eps, codebook, torch.Generator().manual_seed(0))
        distance = (found.images - images.long() * PARTS).abs().max()
        assert distance <= eps * PARTS
        assert found.images.min() >= 0
        assert found.images.max() <= 255 * PARTS
        wrong = network(discretise(found.images, codebook).float()).argmax(1) != labels
        assert (wrong == found.broken).all()


def test_zero_radius_breaks_only_what_is_wrong_already(proven_network, drawn_digits):
    codebook, network = proven_network
    images, labels = drawn_digits(100, 2)
    found = attack(network, images, labels, 0, codebook, torch.Generator().manual_seed(0))
    wrong = network(discretise(images.long() * PARTS, codebook).float()).argmax(1) != labels
    assert (found.broken == wrong).all()


def test_everything_breaks_at_full_radius(proven_network, drawn_digits):
    codebook, network = proven_network
    images, labels = drawn_digits(100, 3)
    found = attack(network, images, labels, 255, codebook, torch.Generator().manual_seed(0), restarts=20)
    assert found.broken.float().mean() > 0.7  # the same image is in every ball: one class alone can survive


def test_the_split_lands_where_the_adversary_wants_it(drawn_digits):
    images, _ = drawn_digits(20, 4)
    radius = 50 * PARTS
    for where in (0.0, 0.4, 1.0):
        bottom, top, double_split = reach(images, radius, "adaptive", torch.full((20,), where))
        mixed = torch.where(2 * bottom > double_split, top, bottom)
        real = mixed.amin((1, 2, 3), keepdim=True) + mixed.amax((1, 2, 3), keepdim=True)
        assert (real == double_split).all()
    ends = [reach(images, radius, "adaptive", torch.full((20,), w))[2] for w in (0.0, 1.0)]
    assert (ends[0] == (255 - 50) * PARTS).all()
    assert (ends[1] == (255 + 50) * PARTS).all()
