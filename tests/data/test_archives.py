"""Archives that try to escape, to flood or to confuse are refused, and leave nothing anywhere."""

import gzip
import io
import random as python_random
import shutil
import stat
import tarfile
import zipfile
from collections import Counter

import pytest

from linocut.data.archives import Limits, unpack
from linocut.errors import InputError


def tar_of(members, mode="w:gz"):
    """The bytes of a tar of (name, content) or of TarInfo."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return stream.getvalue()


def zip_of(members):
    """The bytes of a zip of (name or ZipInfo, content)."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members:
            packed.writestr(name, content)
    return stream.getvalue()


GOOD = [("set/train/a/1.txt", b"one"), ("set/train/b/2.txt", b"two"), ("set/empty.txt", b"")]


@pytest.fixture
def place(tmp_path):
    """An archive's path, an empty target, and the assurance that nothing else appears."""
    (tmp_path / "target").mkdir()
    (tmp_path / "neighbour").write_text("untouched")
    return tmp_path


def everything(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
        if path.name != "archive"
    }


@pytest.mark.parametrize("make", [tar_of, lambda m: tar_of(m, "w"), zip_of])
def test_a_good_archive_arrives_whole(place, make):
    (place / "archive").write_bytes(make(GOOD))
    made = unpack(place / "archive", place / "target")
    assert sorted(p.relative_to(place / "target").as_posix() for p in made) == sorted(n for n, _ in GOOD)
    for name, content in GOOD:
        assert (place / "target" / name).read_bytes() == content
    assert not [p for p in (place / "target").iterdir() if p.name.startswith(".")]


def test_two_archives_share_a_folder_and_a_folder_entry_is_no_file(place):
    folder = tarfile.TarInfo("set/")
    folder.type = tarfile.DIRTYPE
    (place / "archive").write_bytes(tar_of([folder, *GOOD]))
    unpack(place / "archive", place / "target")
    (place / "archive").write_bytes(zip_of([("set/", b""), ("set/train/a/9.txt", b"nine"), GOOD[0]]))
    unpack(place / "archive", place / "target")
    assert (place / "target/set/train/a/9.txt").read_bytes() == b"nine"
    assert (place / "target/set/train/a/1.txt").read_bytes() == b"one"


def special(kind, name="set/x", linked=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, linked
    return info


def zip_mode(name, mode):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def sparse():
    """A sparse member of GNU tar that claims a gigabyte and holds none of it."""
    info = tarfile.TarInfo("set/x")
    info.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(2**30), "GNU.sparse.numblocks": "1"}
    return info


def hostile():
    names = {
        "up": "../neighbour",
        "up from within": "set/../../neighbour",
        "up at the end": "set/..",
        "absolute": "/tmp/linocut-escaped",
        "backslashes": "..\\neighbour",
        "drive": "C:neighbour",
        "newline": "set/a\nb",
        "trailing dot": "set/a./b",
        "trailing space": "set/a /b",
        "too deep": "/".join("abcdefghijklmnopqrstuvwxyz"),
        "too long": "set/" + "n" * 300,
    }
    cases = {}
    for kind, name in names.items():
        cases[f"tar: {kind}"] = tar_of([*GOOD, (name, b"escaped")])
        cases[f"zip: {kind}"] = zip_of([*GOOD, (name, b"escaped")])
    named = tarfile.TarInfo("set/x")
    named.pax_headers = {"path": "set/a\0b"}
    cases["tar: NUL"] = tar_of([*GOOD, named])
    cases["zip: NUL"] = zip_of([*GOOD, ("set/aXb", b"escaped")]).replace(b"set/aXb", b"set/a\0b")
    for kind, same in {
        "twice": "set/empty.txt",
        "capitals": "SET/Empty.TXT",
        "dots": "set/./empty.txt",
        "slashes": "set//empty.txt",
        "a file's child": "set/empty.txt/child",
        "a folder's name": "set/train",
        "a folder's name in capitals": "Set/TRAIN",
    }.items():
        cases[f"tar: {kind}"] = tar_of([*GOOD, (same, b"again")])
        if kind != "twice":
            cases[f"zip: {kind}"] = zip_of([*GOOD, (same, b"again")])
    cases["tar: accents"] = tar_of([("set/\u00e9", b"one"), ("set/e\u0301", b"two")])
    twice = zip_of([("set/one.txt", b"1"), ("set/two.txt", b"2")])
    cases["zip: twice"] = twice.replace(b"set/two.txt", b"set/one.txt")
    cases["tar: symlink"] = tar_of([*GOOD, special(tarfile.SYMTYPE, linked="/etc/passwd")])
    cases["tar: symlink then through it"] = tar_of(
        [special(tarfile.SYMTYPE, "set", linked=".."), ("set/neighbour", b"escaped")]
    )
    cases["tar: hard link"] = tar_of([*GOOD, special(tarfile.LNKTYPE, linked="../neighbour")])
    cases["tar: character device"] = tar_of([*GOOD, special(tarfile.CHRTYPE)])
    cases["tar: block device"] = tar_of([*GOOD, special(tarfile.BLKTYPE)])
    cases["tar: pipe"] = tar_of([*GOOD, special(tarfile.FIFOTYPE)])
    cases["tar: sparse"] = tar_of([*GOOD, sparse()])
    cases["zip: symlink"] = zip_of([*GOOD, (zip_mode("set/x", stat.S_IFLNK | 0o777), b"/etc/passwd")])
    cases["zip: device"] = zip_of([*GOOD, (zip_mode("set/x", stat.S_IFCHR | 0o777), b"")])
    cases["tar: bomb"] = tar_of([*GOOD, ("set/zeros", bytes(30 * 2**20))])
    cases["zip: bomb"] = zip_of([*GOOD, ("set/zeros", bytes(30 * 2**20))])
    cases["tar: bomb of headers"] = gzip.compress(tar_of([(f"set/{i}", b"") for i in range(5000)], "w"))
    cases["zip: too many"] = zip_of([(f"set/{i}", b"") for i in range(60)])
    cases["tar: too many"] = tar_of([(f"set/{i}", b"") for i in range(60)])
    cases["tar: cut short"] = tar_of([*GOOD, ("set/x", bytes(range(256)) * 50)])[:-200]
    cases["tar: one flipped byte"] = flipped(tar_of(GOOD), 60)
    cases["zip: one flipped byte"] = flipped(zip_of([("set/x", bytes(range(256)))]), 60)
    cases["zip: cut short"] = zip_of(GOOD)[:-10]
    cases["garbage"] = bytes(range(256)) * 10
    cases["empty"] = b""
    huge = special(tarfile.XHDTYPE, "././@PaxHeader")
    huge.size = 2**33
    cases["tar: a header of gigabytes"] = gzip.compress(huge.tobuf() + bytes(10240))
    locked = bytearray(zip_of(GOOD))
    locked[6] |= 1
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    cases["zip: encrypted"] = bytes(locked)
    return cases


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


CASES = hostile()


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_archive_is_refused_and_leaves_nothing_anywhere(place, case):
    (place / "archive").write_bytes(CASES[case])
    before = everything(place)
    with pytest.raises(InputError, match="archive"):
        unpack(place / "archive", place / "target", Limits(members=50))
    assert everything(place) == before


def test_the_limits_on_bytes_and_their_ratio_hold_each_by_itself(place):
    (place / "archive").write_bytes(zip_of([("zeros", bytes(100_000))]))
    with pytest.raises(InputError, match="far more bytes"):
        unpack(place / "archive", place / "target", Limits(ratio=1e6, total_bytes=99_999))
    with pytest.raises(InputError, match="far more bytes"):
        unpack(place / "archive", place / "target", Limits(ratio=10))
    unpack(place / "archive", place / "target", Limits(ratio=1e6, total_bytes=100_000))
    assert (place / "target/zeros").stat().st_size == 100_000


def test_files_get_no_mode_from_the_archive(place):
    info = tarfile.TarInfo("tool")
    info.mode = 0o6777
    (place / "archive").write_bytes(tar_of([info]))
    (made,) = unpack(place / "archive", place / "target")
    assert not made.stat().st_mode & 0o7111


def test_the_naive_way_does_escape(place):
    """The tests above can fail: without care the same bytes reach the neighbour."""
    with tarfile.open(fileobj=io.BytesIO(CASES["tar: up"])) as tar:
        tar.extractall(place / "target", filter="fully_trusted")
    assert (place / "neighbour").read_text() == "escaped"


def test_changed_bytes_are_unpacked_or_refused_and_nothing_leaves_the_target(place, count):
    dice = python_random.Random(11)
    originals = [tar_of(GOOD), tar_of(GOOD, "w"), zip_of(GOOD)]
    seen = Counter()
    for _ in range(count(150, 3000)):
        content = bytearray(dice.choice(originals))
        for _ in range(dice.choice((1, 2, 10))):
            content[dice.randrange(len(content))] = dice.randrange(256)
        (place / "archive").write_bytes(content)
        try:
            unpack(place / "archive", place / "target")
            seen["unpacked"] += 1
        except InputError:
            seen["refused"] += 1
        shutil.rmtree(place / "target")
        assert everything(place) == {"neighbour": b"untouched"}
    assert set(seen) == {"unpacked", "refused"}
