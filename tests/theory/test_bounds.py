import torch
from torch import nn

from linocut.theory.bounds import margin_bounds, propagate
from linocut.theory.network import build, folded


def fresh(seed=0):
    return folded(build(((6, 2), (8, 1)), 16, torch.Generator().manual_seed(seed), side=8, classes=5).eval())


def boxes(n, seed):
    dice = torch.Generator().manual_seed(seed)
    lower = torch.rand(n, 1, 8, 8, generator=dice) < 0.3
    upper = lower | (torch.rand(n, 1, 8, 8, generator=dice) < 0.2)
    return lower.float(), upper.float(), torch.randint(0, 5, (n,), generator=dice), dice


def lead(network, images, labels):
    logits = network(images)
    true = logits.gather(1, labels[:, None]).squeeze(1)
    return true - logits.scatter(1, labels[:, None], -torch.inf).amax(1)


def test_no_image_in_the_box_is_below_the_bound(count):
    network = fresh()
    lower, upper, labels, dice = boxes(100, 1)
    bound = margin_bounds(network, lower, upper, labels)
    for _ in range(count(50, 2000)):
        images = torch.where(torch.rand(lower.shape, generator=dice) < 0.5, lower, upper)
        assert (lead(network, images, labels) >= bound - 1e-5).all()
    assert (lead(network, lower, labels) > bound + 1e-3).any()


def test_a_box_of_one_image_gives_its_lead():
    network = fresh()
    lower, _, labels, _ = boxes(20, 2)
    assert torch.allclose(margin_bounds(network, lower, lower, labels), lead(network, lower, labels), atol=1e-5)


def test_a_wider_box_never_has_a_higher_bound():
    network = fresh()
    lower, upper, labels, _ = boxes(50, 3)
    narrow = margin_bounds(network, lower, upper, labels)
    wide = margin_bounds(network, torch.zeros_like(lower), torch.ones_like(upper), labels)
    assert (wide <= narrow + 1e-6).all()


def test_batch_norm_treats_natural_images_and_bounds_alike():
    """With an empty box around the natural images the centre is what the network computes, in training too."""
    network = build(((6, 2),), 16, torch.Generator().manual_seed(0), side=8, classes=5)
    lower, _, _, _ = boxes(32, 4)
    for training in (True, False):
        network.train(training)
        natural, center, radius = propagate(network, lower, lower, lower)
        assert torch.allclose(natural, center, atol=1e-5)
        assert radius.abs().max() < 1e-6


def test_rounding_is_far_below_the_slack(proven_network, drawn_digits):
    from linocut.theory.branching import SLACK
    from linocut.theory.certificate import binary_bounds, span_of

    codebook, network = proven_network
    images, labels = drawn_digits(300, 5)
    choice = span_of(images, 60, codebook)
    lower, upper = (b.float() for b in binary_bounds(images, choice.first_min, choice.last(choice.first_min)))
    single = margin_bounds(network, lower, upper, labels)
    double = nn.Sequential(*folded(network)).double()
    exact = margin_bounds(double, lower.double(), upper.double(), labels)
    assert (single - exact).abs().max() < SLACK / 10
