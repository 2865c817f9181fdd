"""The paper's rows as the package carries them."""

from collections import Counter

from linocut.report import paper


def test_there_are_69_rows_and_none_twice():
    rows = paper.rows()
    keys = Counter((row.dataset, row.training, row.transform, row.transform_at) for row in rows)
    assert len(rows) == 69
    assert set(keys.values()) == {1}


def test_the_headline_of_the_paper_is_there():
    baseline = paper.find("cifar-10", "atta", "none", "none")
    retrained = paper.find("cifar-10", "atta", "ac+ab", "train")
    assert (baseline.l2_pgd, retrained.l2_pgd) == (20.15, 38.46)


def test_every_figure_is_a_percentage_or_none():
    for row in paper.rows():
        for name in paper.FIGURES:
            value = getattr(row, name)
            assert value is None or 0 <= value <= 100


def test_a_model_that_the_paper_lacks_has_no_row():
    assert paper.find("cifar-10", "natural", "none", "none") is None
    assert paper.find("digits", "atta", "none", "none") is None


def test_a_row_with_another_transform_or_ball_is_not_the_papers():
    assert not any(paper.is_another(name) for name in ("baseline", "cifar-10/acab-retrained+epochs=5+num_steps=7"))
    assert all(
        paper.is_another(name)
        for name in ("baseline+norm=l2", "baseline+epochs=5+eps=0.1", "ac-retrained@separation=2")
    )
