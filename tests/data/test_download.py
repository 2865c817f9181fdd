"""Downloads from a server on this machine: whole, wrong, cut, resumed, too large, redirected."""

import hashlib
import http.server
import io
import tarfile
import threading

import pytest

from linocut.data import catalogue
from linocut.data.catalogue import ENTRIES, Entry, RemoteFile, check_address, entry
from linocut.data.download import download, fetch
from linocut.errors import InputError

CONTENT = bytes(i * i % 251 for i in range(400_000))


class Server(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT in the way that the path says."""

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Range")))
        start = 0
        ranges = self.headers.get("Range")
        if ranges and self.path != "/no-ranges":
            start = int(ranges.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            shown = start + 1 if self.path == "/wrong-range" else start
            self.send_header("Content-Range", f"bytes {shown}-{len(CONTENT) - 1}/{len(CONTENT)}")
        elif self.path == "/redirected":
            self.send_response(302)
            self.send_header("Location", self.server.elsewhere)
            self.end_headers()
            return
        elif self.path == "/gone":
            self.send_error(404)
            return
        else:
            self.send_response(200)
        body = self.server.files.get(self.path, CONTENT)[start:]
        if self.path == "/endless":
            body = body * 3
        elif self.path == "/longer":
            body = body + b"more"
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.path == "/cut" and not ranges:
            body = body[:150_000]
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(catalogue, "PLAIN_HTTP", ("127.0.0.1",))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as running:
        running.asked, running.files, running.elsewhere = [], {}, ""
        running.address = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def remote(server):
    """remote(path, **changes): the entry of CONTENT at this path of the server."""

    def make(path, **changes):
        facts = {"size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()} | changes
        return RemoteFile(url=server.address + path, **facts)

    return make


def test_a_whole_file_arrives_once_and_progress_is_told(tmp_path, server, remote):
    seen = []
    for _ in range(2):
        path = fetch(remote("/x"), tmp_path / "a" / "x", lambda *p: seen.append(p))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == ("x", len(CONTENT), len(CONTENT))
    assert len(server.asked) == 1
    assert [p.name for p in path.parent.iterdir()] == ["x"]


def test_md5_serves_where_no_more_was_published(tmp_path, remote):
    good = remote("/x", sha256="", md5=hashlib.md5(CONTENT).hexdigest())
    assert fetch(good, tmp_path / "x").read_bytes() == CONTENT
    with pytest.raises(InputError, match="hash"):
        fetch(remote("/y", sha256="", md5="0" * 32), tmp_path / "y")


def test_a_wrong_hash_keeps_nothing(tmp_path, remote):
    with pytest.raises(InputError, match="hash"):
        fetch(remote("/x", sha256="0" * 64), tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_a_cut_connection_is_gone_on_with(tmp_path, server, remote):
    with pytest.raises(InputError, match="150000 of 400000 bytes are kept"):
        fetch(remote("/cut"), tmp_path / "x")
    assert not (tmp_path / "x").exists()
    assert fetch(remote("/cut"), tmp_path / "x").read_bytes() == CONTENT
    assert server.asked == [("/cut", None), ("/cut", "bytes=150000-")]


def test_a_server_that_cannot_resume_starts_again(tmp_path, remote):
    (tmp_path / "x.part").write_bytes(CONTENT[:1000])
    assert fetch(remote("/no-ranges"), tmp_path / "x").read_bytes() == CONTENT


def test_a_beginning_of_something_else_is_thrown_away(tmp_path, server, remote):
    (tmp_path / "x.part").write_bytes(b"?" * 1000)
    assert fetch(remote("/x"), tmp_path / "x").read_bytes() == CONTENT
    assert [r for _, r in server.asked] == ["bytes=1000-", None]


@pytest.mark.parametrize("size", [400_000, 400_001])
def test_a_partial_file_of_the_whole_size_or_more_is_checked_like_any_other(tmp_path, remote, size):
    (tmp_path / "x.part").write_bytes(b"?" * size)
    assert fetch(remote("/x"), tmp_path / "x").read_bytes() == CONTENT


@pytest.mark.parametrize(("path", "reason"), [("/endless", "more than"), ("/longer", "published file of")])
def test_more_than_the_published_size_is_never_kept(tmp_path, remote, path, reason):
    with pytest.raises(InputError, match=reason):
        fetch(remote(path), tmp_path / "x")
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) == 0


def test_a_wrong_range_and_a_missing_file_are_refused(tmp_path, remote):
    (tmp_path / "x.part").write_bytes(CONTENT[:1000])
    with pytest.raises(InputError, match="asked for the bytes from 1000"):
        fetch(remote("/wrong-range"), tmp_path / "x")
    with pytest.raises(InputError, match="404"):
        fetch(remote("/gone"), tmp_path / "y")


def test_only_https_is_asked_and_followed(tmp_path, server, remote, monkeypatch):
    with monkeypatch.context() as usual:
        usual.setattr(catalogue, "PLAIN_HTTP", ())
        with pytest.raises(InputError, match="https"):
            fetch(remote("/x"), tmp_path / "x")
    assert not server.asked
    server.elsewhere = "http://example.com/x"
    with pytest.raises(InputError, match=r"refusing to fetch http://example\.com"):
        fetch(remote("/redirected"), tmp_path / "x")
    server.elsewhere = "file:///etc/passwd"
    with pytest.raises(InputError, match=r"passwd.* is not allowed"):
        fetch(remote("/redirected"), tmp_path / "x")
    server.elsewhere = server.address + "/x"
    assert fetch(remote("/redirected"), tmp_path / "x").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "url",
    ["http://example.com/x", "ftp://example.com/x", "file:///x", "https:///x", "x", "http://127.0.0.1.example.com/"],
)
def test_other_addresses_are_refused_even_where_plain_http_is_allowed(url, monkeypatch):
    monkeypatch.setattr(catalogue, "PLAIN_HTTP", ("127.0.0.1",))
    with pytest.raises(InputError):
        check_address(url)


def archive_of(names):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 4
            tar.addfile(info, io.BytesIO(b"data"))
    return stream.getvalue()


@pytest.mark.parametrize("hostile", [False, True])
def test_an_archive_is_unpacked_into_the_root_and_removed(tmp_path, server, remote, hostile):
    packed = archive_of(["set/a", "../escaped" if hostile else "set/b"])
    server.files["/set.tgz"] = packed
    file = remote("/set.tgz", size=len(packed), sha256=hashlib.sha256(packed).hexdigest(), unpack=True)
    mine = Entry(name="mine", homepage="", licence="", images=(0, 0), num_classes=0, files=(file,))
    root = tmp_path / "root"
    if hostile:
        with pytest.raises(InputError, match="leads out"):
            download(mine, root)
        assert [p.name for p in root.rglob("*")] == ["set.tgz"], "the archive alone is kept, to look at"
        assert [p.name for p in tmp_path.iterdir()] == ["root"]
    else:
        assert sorted(download(mine, root)) == [root / "set/a", root / "set/b"]
        assert not (root / "set.tgz").exists()


def test_an_archive_that_was_unpacked_is_not_fetched_again_while_its_files_are_there(tmp_path, server, remote):
    packed = archive_of(["set/a", "set/b c\u2028d"])
    server.files["/set.tgz"] = packed
    file = remote("/set.tgz", size=len(packed), sha256=hashlib.sha256(packed).hexdigest(), unpack=True)
    mine = Entry(name="mine", homepage="", licence="", images=(0, 0), num_classes=0, files=(file, remote("/plain")))
    placed = download(mine, tmp_path)
    assert download(mine, tmp_path) == placed
    assert [path for path, _ in server.asked] == ["/set.tgz", "/plain"]

    def lose():
        placed[0].unlink()

    def shorten():
        placed[1].write_bytes(b"da")

    def damage():
        placed[1].write_bytes(b"dat!")

    def change_the_mark():
        (mark,) = tmp_path.glob(".*.unpacked")
        mark.write_text(mark.read_text().replace("sha256 ", "sha256 0"))

    for times, harm in enumerate((lose, shorten, damage, change_the_mark), start=2):
        harm()
        assert download(mine, tmp_path) == placed
        assert [path for path, _ in server.asked].count("/set.tgz") == times
        assert placed[1].read_bytes() == b"data"
    (tmp_path / "set.tgz").write_bytes(packed)  # as after a kill between the mark and the removal
    download(mine, tmp_path)
    assert not (tmp_path / "set.tgz").exists()


def test_an_archive_is_kept_until_all_are_there(tmp_path, server, remote):
    packed = archive_of(["set/a"])
    server.files["/one.tgz"] = server.files["/two.tgz"] = packed
    facts = {"size": len(packed), "sha256": hashlib.sha256(packed).hexdigest(), "unpack": True}
    one, gone = remote("/one.tgz", **facts), remote("/gone", **facts)
    mine = Entry(name="mine", homepage="", licence="", images=(0, 0), num_classes=0, files=(one, gone))
    for _ in range(2):
        with pytest.raises(InputError, match="404"):
            download(mine, tmp_path)
    assert [path for path, _ in server.asked] == ["/one.tgz", "/gone", "/gone"]


def test_a_root_that_cannot_be_made_is_said(tmp_path, remote):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match="another root"):
        fetch(remote("/whole"), tmp_path / "file" / "set" / "whole")


def test_the_catalogue_is_sound():
    for name, found in ENTRIES.items():
        assert entry(name) is found
        assert found.licence
        check_address(found.homepage.replace("http://yann", "https://yann"))
        for file in found.files:
            check_address(file.url)
            assert file.size > 0
            assert len(file.sha256) in (0, 64)
            assert len(file.md5) in (0, 32)
    with pytest.raises(InputError, match="there are mnist"):
        entry("imagenet")
    with pytest.raises(AssertionError, match="hash"):
        RemoteFile(url="https://example.com/x", size=1)


def test_plain_http_reaches_nobody_else():
    assert catalogue.PLAIN_HTTP == ()
    for host in ("127.0.0.1", "localhost", "[::1]"):
        with pytest.raises(InputError, match="https"):
            check_address(f"http://{host}/x")
