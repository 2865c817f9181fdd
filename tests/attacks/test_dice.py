import math

import pytest
import torch
from scipy import stats

from linocut.attacks import Dice, example_seed

DRAWS = {
    "uniform": lambda dice, step: dice.uniform(step, (3, 5)),
    "normal": lambda dice, step: dice.normal(step, (3, 5)),
    "sign": lambda dice, step: dice.sign(step, (3, 5)),
    "integers": lambda dice, step: dice.integers(step, (3, 5), 7),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_an_example_draws_the_same_alone_in_any_split_and_in_any_order(draw):
    dice = Dice.of(5, 12)
    whole = draw(dice, 4)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    assert torch.equal(draw(dice.select(order), 4), whole[order])
    for cut in (1, 5):
        parts = [draw(Dice(part), 4) for part in dice.seeds.split(cut)]
        assert torch.equal(torch.cat(parts), whole)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_cpu_and_gpu_draw_the_same_bits(draw):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    assert torch.equal(draw(Dice.of(5, 12, "cuda"), 4).cpu(), draw(Dice.of(5, 12), 4))


def test_the_numbers_are_these_for_ever():
    dice = Dice(torch.tensor([0, -1]))
    assert dice.bits(0, (2,)).tolist() == [
        [-258153783545754509, -2107635905341095551],
        [-4055711772007843400, 8479606968259532442],
    ]
    assert dice.integers(3, (2,), 1000).tolist() == [[489, 781], [237, 105]]
    assert example_seed(1, 2, "pgd") == 7393173078396847890
    assert len({example_seed(a, b, c) for a in (0, 1) for b in (0, 1, "0") for c in "xy"}) == 12


def test_uniform_numbers_are_uniform_and_below_one():
    numbers = Dice.of(0, 400).uniform(0, (500,))
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert stats.kstest(numbers.flatten().numpy(), "uniform").pvalue > 1e-3
    # The same holds for the first number of each example, and for one example over many steps.
    assert stats.kstest(numbers[:, 0].numpy(), "uniform").pvalue > 1e-3
    steps = torch.cat([Dice.of(0, 1).uniform(step, (1,)) for step in range(500)])
    assert stats.kstest(steps.flatten().numpy(), "uniform").pvalue > 1e-3


def test_normal_numbers_are_normal():
    numbers = Dice.of(1, 400).normal(0, (500,)).flatten()
    assert stats.kstest(numbers.numpy(), "norm").pvalue > 1e-3
    assert abs(numbers.std() - 1) < 0.01
    assert numbers.abs().max() > 4


def test_integers_and_signs_are_fair():
    counts = Dice.of(2, 100).integers(0, (700,), 7).flatten().bincount(minlength=7)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3
    assert len(counts) == 7
    signs = Dice.of(2, 100).sign(0, (700,))
    assert signs.abs().eq(1).all()
    assert abs(signs.mean()) < 4 / math.sqrt(signs.numel())


def correlation(a, b):
    return torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1].abs().item()


def test_examples_steps_streams_and_neighbouring_seeds_are_independent():
    dice = Dice(torch.arange(200))  # the worst seeds: consecutive numbers
    first = dice.uniform(0, (200,))
    limit = 4 / math.sqrt(first[1:].numel())
    assert correlation(first[1:], first[:-1]) < limit
    assert correlation(first[:, 1:], first[:, :-1]) < limit
    assert correlation(first, dice.uniform(1, (200,))) < limit
    assert correlation(first, dice.uniform(0, (200,), stream=1)) < limit
    assert correlation(dice.uniform(1, (200,)), dice.uniform(0, (200,), stream=1)) < limit
    assert dice.bits(0, (200,)).unique().numel() == 200 * 200


def test_one_flipped_seed_bit_flips_half_of_the_result():
    seed = torch.tensor([0x1234567])
    flipped = torch.tensor([0x1234567 ^ (1 << bit) for bit in range(63)])
    changed = Dice(seed).bits(0, (4,)) ^ Dice(flipped).bits(0, (4,))
    share = torch.stack([(changed >> bit) & 1 for bit in range(64)]).float().mean(dim=(0, 2))
    assert share.min() > 0.35
    assert share.max() < 0.65
