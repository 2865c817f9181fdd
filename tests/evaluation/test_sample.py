import pytest

from linocut.errors import InputError
from linocut.evaluation.sample import Sample


def test_every_example_once_in_batches_of_fixed_content():
    sample = Sample(size=103, n=103, batch_size=10)
    batches = sample.batches()
    assert sorted(e for batch in batches for e in batch.examples) == list(range(103))
    assert [len(batch.examples) for batch in batches] == [10] * 10 + [3]
    assert list(sample.order) != list(range(103))


def test_a_smaller_sample_begins_a_larger_one():
    assert Sample(size=50, n=50, batch_size=7).order[:20] == Sample(size=50, n=20, batch_size=3).order
    assert Sample(size=50, n=50, batch_size=7, seed=1).order != Sample(size=50, n=50, batch_size=7).order


def test_workers_share_whole_batches():
    sample = Sample(size=40, n=40, batch_size=6)
    shared = [batch for worker in range(3) for batch in sample.batches(worker, 3)]
    assert sorted(shared, key=lambda batch: batch.number) == sample.batches()


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 41}, {"batch_size": 0}])
def test_refuses(wrong):
    with pytest.raises(InputError):
        Sample(**({"size": 40, "n": 40, "batch_size": 5} | wrong))
