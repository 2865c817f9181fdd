import pytest
import torch

from linocut.errors import InputError
from linocut.theory.certificate import PARTS, span_of
from linocut.theory.judging import judge
from linocut.theory.limits import best_fixed, ceiling
from linocut.theory.network import build, folded
from linocut.theory.training import IntervalTraining, attacked, draw_windows, train
from linocut.theory.variation import shifted, vary_contrast


def small_plan(**changes):
    return IntervalTraining(**{"eps": 60, "codebook": "adaptive", "epochs": 1, "batch": 64, "lr": 5e-3, **changes})


def trained(plan, data):
    network = build(((4, 2),), 12, torch.Generator().manual_seed(0), side=8, classes=4)
    return folded(train(network, *data, plan))


def test_interval_training_proves_more_than_natural_training(proven_network, drawn_digits):
    codebook, network = proven_network
    natural = trained(small_plan(codebook=codebook, natural_weight=1.0, epochs=5), drawn_digits(1200, 0))
    images, labels = drawn_digits(100, 1)
    ours, theirs = (judge(n, images, labels, 60, codebook, most_boxes=100) for n in (network, natural))
    assert ours.proven_by_intervals > theirs.proven_by_intervals + 10
    for judged in (ours, theirs):
        assert judged.proven_by_intervals <= judged.proven <= judged.attacked <= judged.natural


def test_the_same_seed_gives_the_same_weights(drawn_digits):
    data = drawn_digits(300, 0)
    one, two, other = (trained(small_plan(seed=seed), data).state_dict() for seed in (1, 1, 2))
    assert all((one[key] == two[key]).all() for key in one)
    assert any((one[key] != other[key]).any() for key in one)


def test_the_schedule_rises_ramps_and_ends_at_zero():
    plan = small_plan(warmup=0.1, ramp=0.5)
    assert [plan.growth(p) for p in (0, 0.1, 0.3, 0.5, 1)] == pytest.approx([0, 0, 0.5, 1, 1])
    assert plan.learning_rate(0.3) == plan.lr
    assert plan.learning_rate(0.75) == pytest.approx(plan.lr / 2)
    assert plan.learning_rate(1.0) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    "change", [{"epochs": 0}, {"batch": 1}, {"warmup": 0.6}, {"natural_weight": 1.5}, {"attacked": -1}]
)
def test_impossible_plans_are_refused(change):
    with pytest.raises(InputError):
        small_plan(**change)


def test_fewer_images_than_a_batch_are_refused(drawn_digits):
    with pytest.raises(InputError, match="lower batch"):
        trained(small_plan(), drawn_digits(63, 0))


@pytest.mark.parametrize("codebook", ["adaptive", (0, 255)])
def test_drawn_windows_are_windows_of_the_span(codebook, drawn_digits):
    images, _ = drawn_digits(400, 3)
    where = torch.rand(len(images), generator=torch.Generator().manual_seed(0))
    where[:100], where[100:200] = 0, 1
    choice = span_of(images, 50, codebook)
    natural, lower, upper = draw_windows(images, torch.tensor(50 * PARTS), codebook, where)
    for end, first in ((0, choice.first_min), (100, choice.first_max)):  # the first and the last window exactly
        expected = images[end : end + 100] >= first[end : end + 100].view(-1, 1, 1, 1)
        assert (upper[end : end + 100] == expected).all()
    undecided = ((upper - lower) > 0).flatten(1)
    levels = images.flatten(1).long()
    spread = torch.where(undecided, levels, -1).amax(1) - torch.where(undecided, levels, 999).amin(1)
    assert (spread[undecided.any(1)] < choice.width).all()
    assert (levels[undecided] >= choice.first_min.min()).all()
    assert (levels[undecided] <= choice.last_max.max()).all()
    if codebook != "adaptive":
        assert (natural >= lower).all()
        assert (natural <= upper).all()


def test_attacked_images_stay_inside_their_box_and_lose_more_than_random_ones(proven_network, drawn_digits):
    codebook, network = proven_network
    images, labels = drawn_digits(300, 5)
    dice = torch.Generator().manual_seed(0)
    _, lower, upper = draw_windows(images, 60 * PARTS, codebook, torch.rand(300, generator=dice))
    colors = torch.rand(images.shape, generator=dice) < 0.5
    worse = attacked(network, lower, upper, labels, colors)
    assert ((worse == lower) | (worse == upper)).all()
    loss = torch.nn.functional.cross_entropy
    at_random = loss(network(torch.where(colors, upper, lower)), labels)
    assert loss(network(worse), labels) > 1.2 * at_random


def test_training_on_attacked_images_leaves_no_mark_of_the_attack(drawn_digits):
    """Batch norms count one pass a step, attacked or not; attacked training differs from natural training."""
    data = drawn_digits(320, 0)
    networks = {}
    for share in (0.0, 0.5):
        network = build(((4, 2),), 12, torch.Generator().manual_seed(0), side=8, classes=4)
        networks[share] = train(network, *data, small_plan(attacked=share))
        assert network[1].num_batches_tracked.item() == 320 // 64
    assert any((a != b).any() for a, b in zip(networks[0.0].parameters(), networks[0.5].parameters(), strict=True))


def test_shifted_images_are_the_same_digits_a_little_to_the_side():
    images = torch.zeros(500, 1, 8, 8, dtype=torch.uint8)
    images[:, :, 3, 4] = 200
    moved = shifted(images, 1, torch.Generator().manual_seed(0))
    places = moved[:, 0].nonzero()[:, 1:]
    assert (moved.flatten(1).amax(1) == 200).all()
    assert {tuple(place) for place in places.tolist()} == {(y, x) for y in (2, 3, 4) for x in (3, 4, 5)}
    edge = torch.full((100, 1, 2, 2), 9, dtype=torch.uint8)
    assert set(shifted(edge, 1, torch.Generator().manual_seed(0)).unique().tolist()) == {0, 9}


@pytest.mark.parametrize("w", [1, 64, 255])
def test_varied_images_have_ranges_at_least_w_wide(w, drawn_digits):
    images, _ = drawn_digits(2000, 4)
    varied = vary_contrast(images, w, torch.Generator().manual_seed(0))
    flat = varied.flatten(1).long()
    ranges = flat.amax(1) - flat.amin(1)
    assert ranges.min() >= w
    assert varied.dtype == torch.uint8
    if w == 64:
        assert ranges.min() < w + 4  # and no wider than asked
        assert flat.amin(1).max() > 180
        assert flat.amax(1).max() > 252
        # all pairs equally likely: of those at least 64 apart, the mean distance is 64 + 191/3
        assert abs(ranges.double().mean() - (64 + 191 / 3)) < 4


def test_all_pairs_of_colors_occur_equally_often():
    images = torch.tensor([0, 255], dtype=torch.uint8).repeat(30_000, 1)
    pairs = vary_contrast(images, 253, torch.Generator().manual_seed(0)).long()
    counts = torch.bincount(pairs[:, 0] * 256 + pairs[:, 1])
    counts = counts[counts > 0]
    assert len(counts) == 6
    assert (counts - 5000).abs().max() < 350


def test_the_ceiling_of_a_fixed_codebook_counts_images_that_can_be_made_one_color():
    lowest, highest = torch.tensor([[0, 0, 100, 90, 200, 210], [255, 200, 120, 130, 255, 250]])
    labels = torch.tensor([0, 1, 0, 1, 1, 1])
    assert ceiling(lowest, highest, labels, 0, (0, 255)) == 1  # one is all black, two all white and of one label
    assert ceiling(lowest, highest, labels, 10, (0, 255)) == pytest.approx(5 / 6)  # two can be black, of two labels
    best = best_fixed(torch.stack([lowest, highest], 1).view(-1, 1, 1, 2), labels, 10)
    assert best.ceiling >= 5 / 6
    assert ceiling(lowest, highest, labels, 10, best.codebook) == best.ceiling


def test_no_network_proves_more_than_the_ceiling(proven_network, drawn_digits):
    codebook, network = proven_network
    if codebook == "adaptive":
        pytest.skip("a ceiling of fixed codebooks")
    images, labels = drawn_digits(200, 6)
    varied = vary_contrast(images, 64, torch.Generator().manual_seed(0))
    flat = varied.flatten(1)
    top = ceiling(flat.amin(1), flat.amax(1), labels, 15, codebook)
    assert judge(network, varied, labels, 15, codebook, most_boxes=50).proven <= 100 * top < 100


def test_a_proven_image_that_breaks_stops_the_judge(monkeypatch, proven_network, drawn_digits):
    """An unsound proof (here: everything is proven) is caught, because proven images are attacked as well."""
    from linocut.theory import judging
    from linocut.theory.branching import Proof

    codebook, network = proven_network
    images, labels = drawn_digits(50, 2)

    def prove_anything(network, images, *rest, **options):
        return Proof(torch.ones(len(images), dtype=torch.bool), torch.ones(len(images)))

    monkeypatch.setattr(judging, "prove", prove_anything)
    with pytest.raises(AssertionError, match="unsound"):
        judge(network, images, labels, 120, codebook)
