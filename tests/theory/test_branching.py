import itertools

import pytest
import torch
from torch import nn

from linocut.errors import InputError
from linocut.theory.attack import attack
from linocut.theory.branching import Boxes, halve_windows, prove
from linocut.theory.certificate import binary_bounds, certify, span_of
from linocut.theory.network import build, folded

SIDE = 3


def tiny_network(seed):
    network = build(((4, 1),), 8, torch.Generator().manual_seed(seed), side=SIDE, classes=3).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3)
    return folded(network)


def reachable(image, eps, codebook):
    """Every black-and-white image in any window of the span, as rows of bits."""
    choice = span_of(image[None], eps, codebook)
    found = set()
    for first in range(int(choice.first_min), int(choice.first_max) + 1):
        lower, upper = binary_bounds(image[None], torch.tensor([first]), choice.last(torch.tensor([first])))
        ranges = [
            (bool(a),) if a == b else (False, True) for a, b in zip(lower.flatten(), upper.flatten(), strict=True)
        ]
        found |= set(itertools.product(*ranges))
    return torch.tensor(sorted(found)).view(-1, 1, SIDE, SIDE)


@pytest.mark.parametrize("codebook", ["adaptive", (0, 255)])
def test_with_enough_boxes_the_proof_is_exact(codebook, count):
    """On 3 x 3 images every reachable image can be listed: proven iff the label leads on all of them."""
    dice = torch.Generator().manual_seed(0)
    seen = []
    for seed in range(count(12, 100)):
        network = tiny_network(seed)
        image = torch.randint(0, 256, (1, SIDE, SIDE), generator=dice).to(torch.uint8)
        listed = reachable(image, 40, codebook).float()
        logits = network(listed).sort(1).values
        label = network(listed[:1]).argmax(1)
        constant = bool((network(listed).argmax(1) == label).all())
        if constant and (logits[:, -1] - logits[:, -2]).min() < 2e-3:
            continue  # nearer than the slack
        assert bool(prove(network, image[None], label, 40, codebook, most_boxes=10**6).proven) == constant
        seen.append(constant)
    assert set(seen) == {True, False}


def test_windows_prove_more_than_their_union_and_pixels_more_than_windows(proven_network, drawn_digits):
    codebook, network = proven_network
    images, labels = drawn_digits(100, 7)
    union = prove(network, images, labels, 60, codebook, most_boxes=2).proven
    windows = prove(network, images, labels, 60, codebook, by_pixel=False).proven
    pixels = prove(network, images, labels, 60, codebook, most_boxes=300).proven
    assert (union <= windows).all()
    assert (windows <= pixels).all()
    assert pixels.float().mean() > 0.5


def test_proven_images_survive_attack_and_random_perturbations(proven_network, drawn_digits, count):
    codebook, network = proven_network
    images, labels = drawn_digits(count(100, 1000), 8)
    dice = torch.Generator().manual_seed(0)
    for eps in (20, 60, 83.3):
        proven = prove(network, images, labels, eps, codebook, most_boxes=200).proven
        broken = attack(network, images, labels, eps, codebook, dice, restarts=count(6, 50)).broken
        assert not (proven & broken).any()
    assert broken.any()


def test_nothing_undecided_is_proven_with_one_box(proven_network, drawn_digits):
    codebook, network = proven_network
    images, _ = drawn_digits(50, 9)
    flat = torch.where(images > 127, 255, 0).to(torch.uint8)
    assert not any(certify(image, 84, codebook).undecided.any() for image in flat)
    predicted = network((flat > 127).float()).argmax(1)
    found = prove(network, flat, predicted, 84, codebook)
    assert found.proven.all()


def test_results_do_not_depend_on_how_many_boxes_are_bounded_at_once(proven_network, drawn_digits):
    codebook, network = proven_network
    images, labels = drawn_digits(30, 11)
    many, few = (prove(network, images, labels, 40, codebook, most_boxes=10**6, at_once=n).proven for n in (1024, 7))
    assert (many == few).all()


def test_halved_windows_cover_the_whole_range():
    nothing = torch.zeros(2, 1, 1, 1, dtype=torch.bool)
    boxes = Boxes(torch.tensor([0, 1]), torch.tensor([3, -2]), torch.tensor([8, -1]), nothing, nothing)
    halves = halve_windows(boxes)
    for owner, first, last in ((0, 3, 8), (1, -2, -1)):
        covered = [
            w
            for o, a, b in zip(halves.owner, halves.first_min, halves.first_max, strict=True)
            for w in range(int(a), int(b) + 1)
            if o == owner
        ]
        assert sorted(covered) == list(range(first, last + 1))


def test_reduced_precision_is_refused(monkeypatch):
    class OnGpu:
        is_cuda = True

    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    with pytest.raises(InputError, match="allow_tf32"):
        prove(nn.Sequential(), OnGpu(), None, 1, "adaptive")
