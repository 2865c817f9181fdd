"""Which files a run reads and writes."""

from pathlib import Path

import pytest

from linocut.errors import InputError
from linocut.recipes.file_plan import find, plan, told_of, unfollowed


@pytest.fixture
def tree(tmp_path):
    """tree('a/x.png', ...): these files, empty, in a new folder that it returns."""

    def make(*names):
        for name in names:
            file = tmp_path / "in" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        return tmp_path / "in"

    return make


def written(jobs, out):
    return {str(job.target.relative_to(out)) for job in jobs}


def test_a_folder_is_read_with_all_below_it_and_keeps_its_structure(tree, tmp_path):
    folder = tree("a.jpg", "deep/er/b.PNG", "notes.txt", ".hidden/c.png", ".d.png")
    jobs = plan([str(folder)], tmp_path / "out")
    assert written(jobs, tmp_path / "out") == {"a.png", "deep/er/b.png"}
    assert all(job.panel is None for job in jobs)


def test_a_named_file_is_read_whatever_its_suffix(tree, tmp_path):
    folder = tree("scan.dat")
    assert written(plan([str(folder / "scan.dat")], tmp_path / "out"), tmp_path / "out") == {"scan.png"}


def test_patterns_are_expanded_here_where_no_shell_did_it(tree, tmp_path):
    folder = tree("a/x.jpg", "a/y.png", "b/x.jpg")
    jobs = plan([str(folder / "**" / "*.jpg")], tmp_path / "out")
    assert written(jobs, tmp_path / "out") == {"a/x.png", "b/x.png"}


def test_a_file_named_twice_is_done_once(tree, tmp_path):
    folder = tree("x.png")
    assert len(plan([str(folder), str(folder / "x.png"), str(folder / "*.png")], tmp_path / "out")) == 1


def test_a_link_to_a_file_beside_it_is_a_file_too(tree, tmp_path):
    folder = tree("real.png")
    (folder / "alias.png").symlink_to("real.png")
    assert written(plan([str(folder)], tmp_path / "out"), tmp_path / "out") == {"real.png", "alias.png"}


def test_links_to_folders_are_not_followed_and_told(tree, tmp_path):
    folder = tree("a/x.png", "deep/y.png", ".hidden/z.png")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "z.png").touch()
    (folder / "deep" / "more").symlink_to(tmp_path / "other")
    (folder / "again").symlink_to(folder / "a")  # what it leads to is read anyway
    (folder / "loop").symlink_to(folder)
    (folder / ".hidden" / "link").symlink_to(tmp_path / "other")
    (folder / "alias.png").symlink_to(folder / "a" / "x.png")
    assert [path.name for path in find([str(folder)])] == ["alias.png", "x.png", "y.png"]
    assert unfollowed([str(folder), str(folder)]) == [folder / "deep" / "more"]
    assert unfollowed([str(folder), str(tmp_path / "other")]) == []
    assert unfollowed([str(folder / "a" / "x.png")]) == []
    assert "deep/more; name such a folder itself" in told_of(unfollowed([str(folder)]))
    assert "and 2 more" in told_of([Path(str(n)) for n in range(7)])


def test_names_that_clash_keep_their_suffix(tree, tmp_path):
    folder = tree("x.jpg", "x.bmp", "X.gif", "y.png")
    jobs = plan([str(folder)], tmp_path / "out")
    assert written(jobs, tmp_path / "out") == {"x.jpg.png", "x.bmp.png", "X.gif.png", "y.png"}


def test_a_clash_that_suffixes_cannot_settle_is_refused(tree, tmp_path):
    folder = tree("a/x.png", "b/x.png")
    with pytest.raises(InputError, match="both be written"):
        plan([str(folder / "a"), str(folder / "b")], tmp_path / "out")


@pytest.mark.parametrize("out", [".", "below/it"])
def test_outputs_never_go_into_a_folder_that_is_read(tree, out):
    folder = tree("x.jpg")
    with pytest.raises(InputError, match="where inputs are read"):
        plan([str(folder)], folder / out)


def test_nor_into_a_folder_that_a_pattern_names(tree, tmp_path):
    folder = tree("x.jpg")
    with pytest.raises(InputError, match="where inputs are read"):
        plan([str(tmp_path / "i*")], folder / "below")


def test_outputs_never_go_beside_a_file_that_is_read(tree):
    folder = tree("x.jpg")
    with pytest.raises(InputError, match="where inputs are read"):
        plan([str(folder / "x.jpg")], folder)
    assert plan([str(folder / "x.jpg")], folder / "result")


@pytest.mark.parametrize("given", ["nowhere.png", "nothing-*.png"])
def test_inputs_that_are_not_there_are_refused(tmp_path, given):
    with pytest.raises(InputError, match=r"no such file|nothing matches"):
        plan([str(tmp_path / given)], tmp_path / "out")


def test_a_folder_without_images_is_refused(tree, tmp_path):
    with pytest.raises(InputError, match="no image files"):
        plan([str(tree("notes.txt"))], tmp_path / "out")


def test_panels_have_their_own_folder(tree, tmp_path):
    folder = tree("a/x.jpg")
    [job] = plan([str(folder)], tmp_path / "out", explain=True)
    assert job.panel == tmp_path / "out" / "explained" / "a" / "x.png"
    with pytest.raises(InputError, match="explained"):
        plan([str(tree("explained/x.jpg"))], tmp_path / "out", explain=True)


def test_the_order_is_that_of_the_names(tree, tmp_path):
    jobs = plan([str(tree("c.png", "a.png", "b.png"))], Path("out"))
    assert [job.source.name for job in jobs] == ["a.png", "b.png", "c.png"]
