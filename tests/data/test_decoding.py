"""Files that are no whole pictures, and how near a reduced JPEG comes to the whole one."""

import io
import random as python_random
import struct
import zlib
from collections import Counter

import numpy as np
import pytest
from PIL import Image, ImageFile

from linocut.data import load
from linocut.data.decoding import read_rgb, square
from linocut.errors import InputError


@pytest.fixture
def photograph(random):
    """Smooth shapes with some grain, 512x640."""
    rows, columns = np.mgrid[0:512, 0:640]
    waves = [127 + 100 * np.sin(rows / a) * np.cos(columns / b) for a, b in ((40, 60), (25, 90), (70, 30))]
    return (np.stack(waves, -1) + random.normal(0, 6, (512, 640, 3))).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".ppm"])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.97])
def test_a_truncated_picture_is_refused_by_name(tmp_path, photograph, suffix, share):
    path = tmp_path / f"x{suffix}"
    Image.fromarray(photograph).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InputError, match="x" + suffix):
        read_rgb(path)


def test_garbage_is_refused_by_name_in_the_middle_of_a_set(tmp_path, class_folders):
    class_folders(tmp_path, {"a": 200})
    (tmp_path / "a" / "077.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    with pytest.raises(InputError, match=r"077\.png"):
        load("folder", tmp_path)
    assert not list((tmp_path / ".linocut-cache").iterdir()), "a set that failed leaves nothing behind"


def bombs():
    side = 12_000
    row = zlib.compress(b"\0" * 1000)
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", row), (b"IEND", b"")]
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(c)) + n + c + struct.pack(">I", zlib.crc32(n + c)) for n, c in chunks
    )
    jpeg = b"\xff\xd8\xff\xc0" + struct.pack(">HBHHB", 17, 8, 60_000, 60_000, 3) + b"\x01\x11\0\x02\x11\0\x03\x11\0"
    return {"png": png, "jpg": jpeg + b"\xff\xda", "ppm": b"P6 60000 60000 255\n" + b"\0" * 100}


@pytest.mark.parametrize("kind", bombs())
def test_a_bomb_is_refused_from_its_header(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda _: pytest.fail("its pixels were decoded"))
    path = tmp_path / f"bomb.{kind}"
    path.write_bytes(bombs()[kind])
    with pytest.raises(InputError, match="bomb"):
        read_rgb(path)


def test_changed_bytes_give_a_picture_or_an_input_error(tmp_path, photograph, count):
    dice = python_random.Random(5)
    originals = []
    for name, options in (("JPEG", {}), ("JPEG", {"progressive": True}), ("PPM", {}), ("PNG", {})):
        stream = io.BytesIO()
        Image.fromarray(photograph[:24, :24]).save(stream, name, **options)
        originals.append(stream.getvalue())
    originals += [b"P3 2 2 255\n" + b"1 2 3 " * 4, b"P5 2 2 65535\n12345678", b"P1 2 2\n1 0 1 0\n"]
    seen = Counter()
    for _ in range(count(200, 5000)):
        content = bytearray(dice.choice(originals))
        for _ in range(dice.choice((1, 2, 10))):
            content[dice.randrange(min(len(content), 600))] = dice.randrange(256)
        (tmp_path / "x").write_bytes(content[: dice.choice((len(content), dice.randrange(len(content))))])
        try:
            seen[read_rgb(tmp_path / "x", dice.choice((None, 8))).mode] += 1
        except InputError:
            seen["refused"] += 1
    assert set(seen) == {"RGB", "refused"}


def test_a_reduced_jpeg_looks_like_the_whole_one(tmp_path, photograph):
    path = tmp_path / "x.jpg"
    Image.fromarray(photograph).save(path, quality=90)
    whole = np.asarray(square(read_rgb(path), 64), float)
    reduced = read_rgb(path, shortest=128)
    assert min(reduced.size) == 128, "the point is to decode fewer pixels"
    assert np.abs(np.asarray(square(reduced, 64), float) - whole).mean() < 1


def test_a_small_jpeg_is_not_reduced(tmp_path, photograph):
    path = tmp_path / "x.jpg"
    Image.fromarray(photograph).save(path)
    assert read_rgb(path, shortest=300).size == (640, 512)
