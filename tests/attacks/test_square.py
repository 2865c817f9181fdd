import pytest
import torch

from linocut.attacks import Dice, Square, ThreatModel, square_windows
from linocut.errors import InputError


@pytest.fixture(params=["linf", "l2"])
def threat(request):
    return ThreatModel("linf", 0.03) if request.param == "linf" else ThreatModel("l2", 0.4)


def test_the_budget_is_exact_and_every_query_is_allowed(network, batch, threat, watched):
    images, labels, dice = batch
    for budget in (1, 2, 60):
        model = watched(network)
        result = Square(num_queries=budget).run(model, images, labels, threat, dice)
        assert len(model.seen) <= budget
        assert sum(len(part) for part in model.seen) == result.queries.sum()
        assert (result.queries[~result.broken] == budget).all()
        assert (result.queries <= budget).all()
        seen = model.images
        natural = images[torch.cdist(seen.flatten(1), images.flatten(1)).argmin(dim=1)]
        assert threat.contains(seen, natural, slack=1e-6).all()
    assert 0 < result.broken.sum() < len(images)
    assert torch.equal(result.broken, network(result.images).argmax(1) != labels)
    assert len(model.seen[-1]) < len(images)  # who is broken has left


def test_the_margin_never_falls_and_is_that_of_the_returned_point(network, batch, threat):
    images, labels, dice = batch
    attack = Square(num_queries=60)
    result = attack.run(network, images, labels, threat, dice)
    logits = network(result.images)
    rows = torch.arange(len(images))
    true = logits[rows, labels]
    logits[rows, labels] = -torch.inf
    assert torch.allclose(result.loss_best, logits.amax(1) - true, atol=1e-5)
    standing = ~result.broken
    assert (result.loss_best >= result.loss_start)[standing].all()
    assert (result.loss_best > result.loss_start)[standing].float().mean() > 0.8


def test_results_do_not_depend_on_batch_mates_or_order(network, batch, threat):
    images, labels, dice = batch
    attack = Square(num_queries=40)
    whole = attack.run(network, images, labels, threat, dice)
    for rows in (torch.arange(24).flip(0), torch.tensor([11])):
        part = attack.run(network, images[rows], labels[rows], threat, dice.select(rows))
        assert torch.allclose(part.images, whole.images[rows], atol=1e-6)
        assert torch.equal(part.queries, whole.queries[rows])


@pytest.mark.parametrize("shape", [(3, 9, 12), (1, 20, 5), (3, 1, 1), (1, 2, 7), (2, 33, 4)])
def test_any_shape_of_image(shape, threat):
    images = torch.rand(5, *shape, generator=torch.Generator().manual_seed(0))

    def model(x):
        score = x.flatten(1).sum(dim=1, keepdim=True)
        return torch.cat([score + 1e4, -score, score * 0], dim=1)

    labels = torch.zeros(5, dtype=torch.long)
    result = Square(num_queries=30).run(model, images, labels, threat, Dice.of(0, 5))
    assert threat.contains(result.images, images).all()
    assert (result.queries == 30).all()
    assert (result.loss_best >= result.loss_start).all()


def test_each_image_has_its_own_window_of_the_planned_size():
    images = torch.full((64, 3, 16, 24), 0.5)
    dice, eps = Dice.of(0, 64), 0.1
    start = square_windows.stripes(images, eps, dice)
    moved = square_windows.repainted(start, images, eps, 5, dice.bits(7, (5,)))
    changed = (moved != start).any(dim=1)
    corners = set()
    for mask in changed:
        rows, columns = mask.nonzero().unbind(1)
        assert rows.max() - rows.min() < 5
        assert columns.max() - columns.min() < 5
        corners.add((rows.min().item(), columns.min().item()))
    assert len(corners) > 40
    assert torch.allclose((moved - images).abs(), torch.tensor(eps), atol=1e-6)


def test_no_query_is_wasted_on_a_window_that_changes_nothing():
    images = torch.full((200, 1, 8, 8), 0.5)
    start = square_windows.stripes(images, 0.1, Dice.of(0, 200))
    for query in range(5):
        moved = square_windows.repainted(start, images, 0.1, 1, Dice.of(0, 200).bits(query, (5,)))
        assert (moved != start).flatten(1).sum(dim=1).eq(1).all()


def test_windows_reach_every_place():
    images = torch.full((3000, 1, 6, 9), 0.5)
    moved = square_windows.repainted(images, images, 0.1, 2, Dice.of(0, 3000).bits(1, (5,)))
    touched = (moved != images).float().mean(dim=(0, 1))
    inner = touched[1:-1, 1:-1]
    assert abs(inner.mean() - 4 / (5 * 8)) < 0.01
    assert touched.min() > 0.01  # the corners, by one window of forty


def test_the_schedule_halves_at_the_published_points_of_any_budget():
    shares = [square_windows.window_share(0.8, query, 10_000) for query in (0, 10, 11, 51, 201, 501, 1001, 8001)]
    assert shares == [0.8, 0.8, *(0.8 / 2**k for k in (1, 2, 3, 4, 5, 9))]
    assert square_windows.window_share(0.8, 101, 1000) == square_windows.window_share(0.8, 1010, 10_000)
    assert square_windows.window_side(0.8, 32, 32, odd=False) == 29
    assert square_windows.window_side(0.8 / 512, 32, 32, odd=False) == 1
    assert square_windows.window_side(0.8 / 512, 32, 32, odd=True) == 3
    assert square_windows.window_side(0.05, 32, 32, odd=True) == 7
    assert square_windows.window_side(1.0, 10, 40, odd=False) == 10


def test_l2_moves_keep_the_whole_budget_and_start_as_twenty_five_two_sided_bumps():
    images = torch.full((30, 3, 20, 25), 0.5)
    dice, eps = Dice.of(0, 30), 1.0
    start = square_windows.tiles(images, eps, dice)
    offset = start - images
    assert torch.allclose(offset.flatten(1).norm(dim=1), torch.ones(30), atol=1e-5)
    tile = offset[0, 0, :4, :5]
    halves = (tile[:2].mul(tile[0, 0].sign()) > 0).all() and (tile[2:].mul(tile[0, 0].sign()) < 0).all()
    turned = (tile[:, :2].mul(tile[0, 0].sign()) > 0).all() and (tile[:, 2:].mul(tile[0, 0].sign()) < 0).all()
    assert halves or turned
    moved = square_windows.shifted_mass(start, images, eps, 3, dice.bits(1, (5,)))
    assert torch.allclose((moved - images).flatten(1).norm(dim=1), torch.ones(30), atol=1e-5)
    emptied = (moved == images).all(dim=1).flatten(1).sum(dim=1)
    assert emptied.max() == 9
    assert (moved != start).any(dim=1).flatten(1).sum(dim=1).max() > 9


def test_a_bump_is_made_of_nested_squares_of_falling_weight():
    bump = square_windows._bump(3, 3)
    assert bump[1, 1] / bump[0, 0] == pytest.approx((1 + 1 / 4) / (1 / 4))
    assert bump.norm() == pytest.approx(1)


def test_starts_zero_eps_and_empty_batches(network, batch, threat, watched):
    images, labels, dice = batch
    model = watched(network)
    Square(num_queries=2).run(model, images, labels, threat, dice, starts=torch.ones_like(images))
    assert torch.allclose(model.seen[0], threat.project(torch.ones_like(images), images), atol=1e-6)
    nothing = ThreatModel(threat.norm, 0.0)
    assert torch.allclose(Square(num_queries=5).run(network, images, labels, nothing, dice).images, images)
    assert len(Square(num_queries=5).run(network, images[:0], labels[:0], threat, Dice.of(0, 0)).images) == 0
    for settings in ({"num_queries": 0}, {"share": 0.0}, {"share": 1.5}):
        with pytest.raises(InputError):
            Square(**settings)


def test_it_finds_the_corner_of_a_linear_model_without_gradients(linear):
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(1, 1, 4, 4, generator=generator)
    images = torch.rand(4, 1, 4, 4, generator=generator) * 0.4 + 0.3
    model, threat = linear(weight, bias=100.0), ThreatModel("linf", 0.1)
    labels = torch.zeros(4, dtype=torch.long)
    result = Square(num_queries=400).run(model, images, labels, threat, Dice.of(0, 4))
    best = -model(images - threat.eps * weight.sign())[:, 0]
    assert torch.allclose(result.loss_best, best, atol=1e-4)
