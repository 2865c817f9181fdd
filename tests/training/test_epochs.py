"""Batches: every example once an epoch, and the same windows for every number of processes."""

import pytest
import torch

from linocut.errors import InputError
from linocut.training.epochs import EpochPlan, Ownership, smallest_part, steps_per_epoch
from linocut.training.schedule import learning_rate

from .conftest import make_config


@pytest.mark.parametrize(
    ("n", "shards", "world"), [(40, 1, 1), (41, 2, 2), (43, 4, 2), (17, 4, 4), (8, 8, 4), (33, 2, 2)]
)
def test_every_example_once_an_epoch_and_the_same_batches_for_every_world(n, shards, world):
    config = make_config(shards=shards, batch_size=8)
    alone = Ownership(num_examples=n, shards=shards)
    whole = EpochPlan(config, alone, 3, (6, 6), "cpu")
    parts = [Ownership(num_examples=n, shards=shards, rank=rank, world=world) for rank in range(world)]
    plans = [EpochPlan(config, own, 3, (6, 6), "cpu") for own in parts]
    for own, plan in zip(parts, plans, strict=True):
        assert smallest_part(config, own) == min(len(batch.examples) for batch in plan.batches())
    seen = []
    for step, batch in enumerate(whole.batches()):
        together, rows = [], []
        for own, plan in zip(parts, plans, strict=True):
            part = plan.batch(step)
            assert part.whole_size == batch.whole_size
            if not part.idle:
                together.append(own.examples()[part.examples])
                rows.append(part.windows.rows)
        assert torch.equal(torch.cat(together), alone.examples()[batch.examples])
        assert torch.equal(torch.cat(rows), batch.windows.rows)
        assert batch.whole_size == len(batch.examples)
        seen.append(batch.examples)
    assert sorted(torch.cat(seen).tolist()) == list(range(n))
    assert len(seen) == steps_per_epoch(config, n)


def test_epochs_differ_and_repeat_by_seed():
    own = Ownership(num_examples=40, shards=1)
    order = lambda seed, epoch: EpochPlan(make_config(seed=seed), own, epoch, (6, 6), "cpu").batch(0).examples  # noqa: E731
    assert torch.equal(order(0, 1), order(0, 1))
    assert not torch.equal(order(0, 1), order(0, 2))
    assert not torch.equal(order(0, 1), order(1, 1))


def test_shards_that_cannot_be_shared_are_refused():
    with pytest.raises(InputError, match="shards=2"):
        Ownership(num_examples=40, shards=1, world=2)


def test_learning_rates():
    steps = make_config(learning_rate=1.0, milestones=(2, 3), gamma=0.1)
    assert [learning_rate(steps, s, 5) for s in (0, 9, 10, 15, 19)] == pytest.approx([1, 1, 0.1, 0.01, 0.01])
    cycle = make_config(learning_rate=1.0, schedule="one-cycle", warmup=0.25)
    rates = [learning_rate(cycle, s, 5) for s in range(20)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[5:] == sorted(rates[5:], reverse=True)
    assert 0 < rates[-1] < 0.02
