import errno
import fcntl

import pytest

from linocut.errors import InputError
from linocut.models.locks import lock_file, taken


def test_a_lock_is_one_holders_until_its_file_is_closed(tmp_path):
    path = tmp_path / "new" / "lock"
    with lock_file(path) as first, lock_file(path) as second:
        assert taken(first)
        assert not taken(second)
        assert taken(first)
        first.close()
        assert taken(second)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file: .*choose a folder that can be written"):
        lock_file(tmp_path / "file" / "lock")


def test_a_disk_without_locks_is_no_other_process(tmp_path, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with lock_file(tmp_path / "lock") as file, pytest.raises(InputError, match="No locks available"):
        taken(file)
