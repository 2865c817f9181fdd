"""The split that we choose where nobody has: a fifth of each class, the same everywhere."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from linocut.data.splits import held_out


def test_the_split_is_pinned_for_ever():
    names = [f"class/{i}.jpg" for i in range(10)]
    assert held_out(names, [0] * 10) == [i in PINNED for i in range(10)]


PINNED = {3, 5}


@given(st.lists(st.integers(0, 4), max_size=200), st.integers(0, 2**32))
def test_a_fifth_of_every_class_and_never_all_of_it(groups, seed):
    names = [f"{group}/{i}" for i, group in enumerate(groups)]
    test = Counter(g for g, chosen in zip(groups, held_out(names, groups, seed=seed), strict=True) if chosen)
    for group, size in Counter(groups).items():
        assert test[group] == (0 if size == 1 else max(1, round(size / 5)))


def test_another_seed_gives_another_split_and_another_class_changes_nothing():
    names, groups = [f"a/{i}" for i in range(50)], [0] * 50
    assert held_out(names, groups, seed=1) != held_out(names, groups, seed=2)
    more = held_out([*names, "b/0", "b/1"], [*groups, 1, 1], seed=1)
    assert more[:50] == held_out(names, groups, seed=1)
