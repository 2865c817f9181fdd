import pytest

from linocut.errors import InputError
from linocut.recipes.publish.lock import alone_in


def test_a_second_publication_is_refused_while_the_first_runs(tmp_path):
    results = tmp_path / "results"
    with alone_in(results):
        (results / "overview.md").write_text("the first")
        with pytest.raises(InputError, match="another process is publishing"), alone_in(results):
            pass
    with alone_in(results):
        assert [path.name for path in results.iterdir()] == ["overview.md"]  # nothing of the lock


def test_a_publication_that_fails_leaves_no_empty_folder(tmp_path):
    with pytest.raises(ZeroDivisionError), alone_in(tmp_path / "results"):
        raise ZeroDivisionError
    assert not (tmp_path / "results").exists()


def test_a_file_is_no_folder_of_results(tmp_path):
    (tmp_path / "results").write_text("")
    with pytest.raises(InputError, match="name a folder"), alone_in(tmp_path / "results"):
        pass
