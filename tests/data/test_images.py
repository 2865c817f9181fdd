"""Every image file that a folder of the real world may hold: decoded rightly, or refused with a reason."""

import io
import os
import struct
import threading
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from linocut.data import images
from linocut.data.images import FORMATS, read_image, write_png
from linocut.errors import InputError

WHITE = 255
Image.init()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(values, color_type, depth=16, extra=b"", size=None):
    """A PNG built by hand, for what Pillow does not write. values: (H, W, channels)."""
    height, width = size or values.shape[:2]
    rows = b"" if values is None else b"".join(b"\0" + row.astype(f">u{depth // 8}").tobytes() for row in values)
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, 0)
    body = chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def encoded(picture, kind, **options):
    stream = io.BytesIO()
    picture.save(stream, format=kind, **options)
    return stream.getvalue()


def photograph(mode="RGB", width=24, height=16):
    """A small smooth picture: it survives lossy formats, and no two corners are alike."""
    y, x = np.mgrid[0:height, 0:width]
    rgb = np.stack([255 * x / (width - 1), 255 * y / (height - 1), 128 + 0 * x], axis=2)
    return Image.fromarray(rgb.astype(np.uint8)).convert(mode)


@pytest.fixture
def decode(tmp_path):
    """decode(bytes, name): read_image of a file that holds them."""

    def read(data, name="picture.png"):
        (tmp_path / name).write_bytes(data)
        return read_image(tmp_path / name)

    return read


def refused(decode, data, *words, name="picture.png"):
    """The message of the refusal, which names the file and holds the words."""
    with pytest.raises(InputError) as caught:
        decode(data, name)
    message = str(caught.value)
    assert name in message
    for word in words:
        assert word in message
    return message


# ---------------------------------------------------------------------------------------- plain files


@pytest.mark.parametrize("kind", FORMATS)
def test_every_listed_format_decodes(decode, kind):
    if kind not in Image.OPEN:
        pytest.skip(f"this Pillow is built without {kind}")
    lossless = {"WEBP": {"lossless": True}, "AVIF": {"quality": 100}, "JPEG": {"quality": 100}}.get(kind, {})
    suffix = {"JPEG": "jpg", "TIFF": "tif"}.get(kind, kind.lower())
    pixels, notes = decode(encoded(photograph(), kind, **lossless), f"picture.{suffix}")
    assert pixels.dtype == torch.uint8
    assert pixels.shape == (3, 16, 24)
    assert pixels.is_contiguous()
    assert notes == ()
    error = pixels.permute(1, 2, 0).numpy().astype(int) - np.asarray(photograph())
    assert np.abs(error).max() <= {"GIF": 40, "JPEG": 8, "AVIF": 12}.get(kind, 0)


@pytest.mark.parametrize(("mode", "channels"), [("1", 1), ("L", 1), ("P", 3), ("RGB", 3)])
def test_grey_has_one_channel_and_everything_else_three(decode, mode, channels):
    pixels, notes = decode(encoded(photograph(mode), "PNG"))
    assert pixels.shape == (channels, 16, 24)
    assert notes == ()
    assert (
        pixels.permute(1, 2, 0).numpy()
        == np.array(photograph(mode).convert("L" if channels == 1 else "RGB")).reshape(16, 24, channels)
    ).all()


def test_odd_paths(decode):
    for name in ("ünï cødé 画.png", "a b'c\"d.png", "-n.png", "no_suffix"):
        assert decode(encoded(photograph(), "PNG"), name)[0].shape == (3, 16, 24)


def test_one_pixel(decode):
    assert decode(encoded(photograph("RGB", 2, 2).crop((0, 0, 1, 1)), "PNG"))[0].shape == (3, 1, 1)


# -------------------------------------------------------------------------------------- damaged files


@pytest.mark.parametrize("kind", ["BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP"])
@pytest.mark.parametrize("keep", [0.02, 0.2, 0.5, 0.8])
def test_truncated_files_are_refused(decode, kind, keep):
    noise = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    whole = encoded(Image.fromarray(noise), kind)
    refused(decode, whole[: int(keep * len(whole))])


def test_empty_garbage_missing_and_folder_are_refused(decode, tmp_path):
    refused(decode, b"", "empty")
    refused(decode, b"no picture at all" * 100, "not an image")
    refused(decode, np.random.default_rng(1).bytes(10_000), "not an image")
    with pytest.raises(InputError, match=r"nowhere\.png: No such file"):
        read_image(tmp_path / "nowhere.png")
    with pytest.raises(InputError, match="not a file"):
        read_image(tmp_path)


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(InputError, match="not a file"):
        read_image(tmp_path / "pipe.png")


def test_a_format_that_runs_another_program_is_not_opened(decode):
    refused(decode, encoded(photograph(), "EPS"), "not an image", name="drawing.eps")


def test_a_wrong_name_decodes_and_is_said(decode):
    pixels, notes = decode(encoded(photograph(), "JPEG"), "picture.png")
    assert pixels.shape == (3, 16, 24)
    assert notes == ("named .png but holds JPEG",)


@pytest.mark.parametrize(("width", "height"), [(0, 5), (5, 0), (0, 0)])
def test_pictures_without_pixels_are_refused(decode, width, height):
    refused(decode, png(np.zeros((1, 1, 3)), 2, depth=8, size=(height, width)))
    refused(decode, b"P5\n%d %d\n255\n" % (width, height), name="picture.pgm")


# ---------------------------------------------------------------------------------------------- bombs


def resident_bytes():
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def webp_header(width, height):
    size = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body = b"WEBPVP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + size
    return b"RIFF" + struct.pack("<I", len(body)) + body


def tiled_tiff(side):
    """A picture of 10 x 10 pixels in one compressed tile of side x side."""
    data = zlib.compress(bytes(1000))
    tags = [(256, 10), (257, 10), (258, 8), (259, 8), (262, 1), (277, 1), (322, side), (323, side), (324, 8)]
    entries = [struct.pack("<HHII", tag, 4, 1, value) for tag, value in [*tags, (325, len(data))]]
    directory = struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + directory


BOMBS = {
    "tile": tiled_tiff(32_768),
    "144 megapixels": png(np.zeros((12000, 1500, 1), np.uint8), 0, depth=8, size=(12000, 12000)),
    "just above": png(np.zeros((1, 1, 1)), 2, depth=8, size=(10_000, 10_001)),
    "far above": png(np.zeros((1, 1, 1)), 2, depth=8, size=(2**31 - 1, 2**31 - 1)),
    "portable": b"P6\n20000 20000\n255\n" + bytes(100),
    "bitmap": encoded(photograph(), "BMP")[:18]
    + struct.pack("<ii", 20_000, 20_000)
    + encoded(photograph(), "BMP")[26:],
    "webp": webp_header(16_000, 16_000),
}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory from /proc")
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_from_the_header(decode, name):
    decode(encoded(photograph(), "PNG"))  # plugins are loaded before the measurement
    before, start = resident_bytes(), time.process_time()
    refused(decode, BOMBS[name], *([] if name == "webp" else ["megapixels"]))
    assert resident_bytes() - before < 50e6
    assert time.process_time() - start < 1


def test_the_naive_way_accepts_the_bomb_with_a_mere_warning(tmp_path):
    """Why the check is needed."""
    (tmp_path / "bomb.png").write_bytes(BOMBS["144 megapixels"])
    with pytest.warns(Image.DecompressionBombWarning), Image.open(tmp_path / "bomb.png") as accepted:
        assert accepted.size == (12000, 12000)


def test_a_large_picture_below_the_limit_gives_no_warning(decode):
    """Pillow warns from 89 megapixels on; we accept 100, so the failure here is about the missing bytes."""
    message = refused(decode, png(np.zeros((1, 1, 1)), 2, depth=8, size=(9_500, 10_000)))
    assert "megapixels" not in message


# ------------------------------------------------------------------------------------- sixteen bits


RAMP = np.arange(65536).reshape(256, 256)
EXACT = np.rint(RAMP / 257).astype(np.uint8)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_a_grey_ramp_of_sixteen_bits_is_scaled_exactly(decode, kind):
    pixels, notes = decode(encoded(Image.fromarray(RAMP.astype(np.uint16)), kind), f"ramp.{kind.lower()}")
    assert (pixels[0].numpy() == EXACT).all()
    assert len(notes) == 1
    assert "16 bits" in notes[0]


def test_the_naive_way_clips_that_ramp():
    """Why the scaling is needed: Pillow's own conversion turns all but the darkest 1/256 white."""
    naive = Image.open(io.BytesIO(encoded(Image.fromarray(RAMP.astype(np.uint16)), "PNG"))).convert("RGB")
    assert (np.asarray(naive) == WHITE).mean() > 0.9


def test_colour_of_sixteen_bits_is_scaled_exactly(decode):
    values = np.random.default_rng(2).integers(0, 65536, (40, 50, 3))
    pixels, notes = decode(png(values, 2))
    assert (pixels.permute(1, 2, 0).numpy() == np.rint(values / 257)).all()
    assert "16 bits" in notes[0]


@pytest.mark.parametrize(("color_type", "channels"), [(4, 2), (6, 4)])
def test_alpha_of_sixteen_bits_is_laid_on_white_exactly(decode, color_type, channels):
    values = np.random.default_rng(3).integers(0, 65536, (40, 50, channels))
    pixels, notes = decode(png(values, color_type))
    share = values[:, :, -1:] / 65535
    wanted = np.rint((values[:, :, :-1] * share + 65535 * (1 - share)) / 257)
    got = pixels.permute(1, 2, 0).numpy()
    assert (got == (wanted if channels == 4 else wanted.repeat(got.shape[2], axis=2))).all()
    assert len(notes) == 2


@pytest.mark.parametrize(("color_type", "key"), [(0, (1000,)), (2, (1000, 2000, 3000))])
def test_a_transparent_colour_of_sixteen_bits_becomes_white(decode, color_type, key):
    values = np.full((3, 4, len(key)), 20_000)
    values[1, 2] = key
    pixels, notes = decode(png(values, color_type, extra=chunk(b"tRNS", struct.pack(f">{len(key)}H", *key))))
    assert (pixels[:, 1, 2] == WHITE).all()
    assert (pixels[:, 0, 0] == round(20_000 / 257)).all()
    assert len(notes) == 2


def tiff(values, bits, sample_format=1, photometric=1, software_offset=None):
    """A one-strip little-endian TIFF, for kinds of pixels that Pillow does not write."""
    height, width = values.shape[:2]
    samples = values.shape[2] if values.ndim == 3 else 1
    data = values.tobytes()
    tags = [
        (256, width),
        (257, height),
        (259, 1),
        (262, photometric),
        (273, 8),
        (277, samples),
        (278, height),
    ]
    tags += [(279, len(data)), (339, sample_format)]
    extra, where = b"", 8 + len(data)
    entries = [struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags]
    if software_offset:
        entries.append(struct.pack("<HHII", 305, 2, 99, software_offset))
    if samples == 1:
        entries.append(struct.pack("<HHIHH", 258, 3, 1, bits, 0))
    else:
        extra = struct.pack(f"<{samples}H", *[bits] * samples)
        entries.append(struct.pack("<HHII", 258, 3, samples, where))
    entries.sort(key=lambda entry: struct.unpack("<H", entry[:2]))
    directory = struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4)
    return b"II*\0" + struct.pack("<I", where + len(extra)) + data + extra + directory


@pytest.mark.parametrize(
    "data",
    [
        tiff(np.arange(12, dtype="<i2").reshape(3, 4), 16, sample_format=2),
        tiff(np.arange(12, dtype="<u2").reshape(3, 4), 16, photometric=0),
        tiff(np.arange(12, dtype="<i4").reshape(3, 4), 32, sample_format=2),
        tiff(np.arange(36, dtype="<u2").reshape(3, 4, 3), 16, photometric=2),
    ],
    ids=["signed", "white is zero", "32 bits", "16-bit colour"],
)
def test_whole_numbers_of_unclear_meaning_are_refused(decode, data):
    refused(decode, data, "save", name="picture.tif")


def test_a_picture_with_missing_strips_is_refused(decode):
    data = tiff(np.zeros((3, 4), np.uint8), 8)
    taller = data.replace(struct.pack("<HHII", 257, 4, 1, 3), struct.pack("<HHII", 257, 4, 1, 3000))
    assert taller != data
    refused(decode, taller, "strips", name="picture.tif")


def test_floats_are_refused(decode):
    floats = Image.fromarray(np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4))
    refused(decode, encoded(floats, "TIFF"), "floats", name="picture.tif")


# ---------------------------------------------------------------------------------- alpha and colour


def test_alpha_is_laid_on_white_and_said(decode):
    red = Image.new("RGBA", (4, 3), (255, 0, 0, 0))
    red.putpixel((1, 2), (255, 0, 0, 255))
    red.putpixel((2, 2), (0, 0, 0, 100))
    pixels, notes = decode(encoded(red, "PNG"))
    assert pixels[:, 0, 0].tolist() == [255, 255, 255]
    assert pixels[:, 2, 1].tolist() == [255, 0, 0]
    assert pixels[:, 2, 2].tolist() == [155, 155, 155]
    assert notes == ("transparent parts laid on white",)


def test_the_naive_way_turns_transparent_red_into_solid_red():
    """Why the composition is needed."""
    assert Image.new("RGBA", (1, 1), (255, 0, 0, 0)).convert("RGB").getpixel((0, 0)) == (255, 0, 0)


def test_an_alpha_channel_that_hides_nothing_is_no_note(decode):
    pixels, notes = decode(encoded(photograph("RGBA"), "PNG"))
    assert (pixels.permute(1, 2, 0).numpy() == np.asarray(photograph())).all()
    assert notes == ()


def test_grey_with_alpha_stays_grey(decode):
    pixels, notes = decode(encoded(Image.new("LA", (3, 2), (0, 0)), "PNG"))
    assert pixels.shape == (1, 2, 3)
    assert (pixels == WHITE).all()
    assert len(notes) == 1


@pytest.mark.parametrize("kind", ["PNG", "GIF"])
def test_palette_transparency_is_laid_on_white(decode, kind):
    picture = Image.new("P", (4, 3), 1)
    picture.putpalette([10, 20, 30, 200, 0, 0])
    picture.putpixel((0, 0), 0)
    pixels, notes = decode(encoded(picture, kind, transparency=1), f"picture.{kind.lower()}")
    assert pixels[:, 0, 0].tolist() == [10, 20, 30]
    assert pixels[:, 2, 2].tolist() == [255, 255, 255]
    assert len(notes) == 1


@pytest.mark.parametrize(("mode", "black", "key"), [("L", 0, 0), ("RGB", (0, 0, 0), (0, 0, 0)), ("1", 0, 0)])
def test_a_transparent_colour_is_laid_on_white(decode, mode, black, key):
    pixels, notes = decode(encoded(Image.new(mode, (4, 3), black), "PNG", transparency=key))
    assert (pixels == WHITE).all()
    assert len(notes) == 1


def test_cmyk_is_converted_and_said(decode):
    pixels, notes = decode(encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG"), "print.jpg")
    assert pixels[0].float().mean() > 200
    assert pixels[1].float().mean() < 50
    assert "CMYK" in notes[0]


def test_lab_is_refused(decode):
    refused(decode, encoded(Image.new("LAB", (4, 3)), "TIFF"), "Lab", name="picture.tif")


# ------------------------------------------------------------------------------ orientation, frames


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_exif_orientation_is_applied(decode, orientation, kind):
    """Each orientation puts the stored top left corner where the EXIF standard says."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(photograph(), kind, exif=exif)
    pixels, notes = decode(data, f"picture.{kind.lower()}")
    wanted = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))
    assert (pixels.permute(1, 2, 0).numpy() == wanted).all()
    assert pixels.shape == ((3, 16, 24) if orientation < 5 else (3, 24, 16))
    if kind != "TIFF":
        assert len(notes) == (orientation > 1)


def test_a_damaged_exif_block_does_not_lose_the_picture(decode):
    pixels, notes = decode(encoded(photograph(), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff"), "picture.jpg")
    assert pixels.shape == (3, 16, 24)
    assert len(notes) <= 1


@pytest.mark.parametrize("kind", ["GIF", "PNG", "TIFF", "WEBP"])
def test_of_an_animation_the_first_frame_is_used(decode, kind):
    frames = [Image.new("RGB", (8, 8), color) for color in ((255, 0, 0), (0, 255, 0), (0, 0, 255))]
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    pixels, notes = decode(data, f"film.{kind.lower()}")
    assert pixels[:, 4, 4].tolist() == [255, 0, 0]
    assert notes == ("the first of 3 frames is used",)


# ------------------------------------------------------------------------------------ fuzz, threads


def samples():
    """Valid files of every format and of the kinds of pixels that take another way through the code."""
    files = [encoded(photograph(), kind) for kind in FORMATS if kind in Image.OPEN]
    files += [encoded(photograph(mode), "PNG") for mode in ("1", "L", "P", "LA", "RGBA")]
    files += [png(np.full((6, 7, n), 30_000), color) for n, color in ((1, 0), (3, 2), (2, 4), (4, 6))]
    files += [encoded(photograph("CMYK"), "JPEG"), encoded(photograph(), "JPEG", progressive=True)]
    files += [encoded(photograph(), "TIFF", compression=way) for way in ("tiff_lzw", "tiff_adobe_deflate", "jpeg")]
    files += [encoded(photograph(), "GIF", save_all=True, append_images=[photograph("L")])]
    files += [
        b"P3\n2 2\n255\n" + b"1 2 3 " * 4,
        b"P2\n2 2\n9\n1 2 3 4",
        b"P4\n8 2\nab",
        b"P6\n2 1\n700\n" + bytes(12),
    ]
    return files


def mutated(data, dice):
    """The bytes with a few of them changed, cut, doubled or overwritten by extreme values."""
    data = bytearray(data)
    for _ in range(dice.integers(1, 8)):
        at = int(dice.integers(0, min(len(data), 64) if dice.random() < 0.5 else len(data)))
        match dice.integers(0, 4):
            case 0:
                data[at] = int(dice.integers(0, 256))
            case 1:
                data[at : at + 4] = bytes([int(dice.choice([0, 1, 127, 128, 255]))]) * 4
            case 2:
                data[at : at + int(dice.integers(1, 20))] = b""
            case 3:
                data[at:at] = data[at : at + int(dice.integers(1, 20))]
        if not data:
            break
    return bytes(data)


def test_no_bytes_raise_anything_else_or_hang(tmp_path, count):
    dice = np.random.default_rng(5)
    files = samples()
    path = tmp_path / "fuzz.png"
    decoded, slowest = 0, 0.0
    for number in range(count(2000, 100_000)):
        path.write_bytes(mutated(files[number % len(files)], dice))
        start = time.process_time()
        try:
            pixels, _ = read_image(path)
        except InputError:
            pass
        else:
            decoded += 1
            assert pixels.dtype == torch.uint8
            assert pixels.dim() == 3
            assert pixels.shape[0] in (1, 3)
            assert pixels.numel() > 0
        slowest = max(slowest, time.process_time() - start)
    assert slowest < 2
    assert decoded > number / 20, "almost everything is refused: the mutations are too harsh to test anything"


def test_threads_share_the_silence_and_leave_the_filters_as_they_were(tmp_path):
    """Eight threads decode files that make Pillow warn: nothing is heard, and the filters are restored."""
    odd = tmp_path / "odd.tif"
    odd.write_bytes(tiff(np.zeros((3, 4), np.uint8), 8, software_offset=10**6))
    with pytest.warns(UserWarning, match="Truncated"), Image.open(odd) as naive:
        naive.load()
    filters = list(warnings.filters)
    heard = []

    def work():
        for _ in range(20):
            try:
                read_image(odd)
            except InputError:
                continue
            except Warning as warning:
                heard.append(warning)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == []
    assert list(warnings.filters) == filters


def test_a_file_cut_short_while_it_is_decoded_does_no_harm(tmp_path, monkeypatch):
    """A decoder that maps the file would end the process with a bus error; here all bytes are in memory by then."""
    path = tmp_path / "picture.tif"
    path.write_bytes(encoded(photograph(), "TIFF", compression="tiff_lzw"))
    real = images.as_bytes

    def cut_first(picture, content):
        os.truncate(path, 100)
        return real(picture, content)

    monkeypatch.setattr(images, "as_bytes", cut_first)
    pixels, _ = read_image(path)
    assert (pixels.permute(1, 2, 0).numpy() == np.asarray(photograph())).all()


def test_a_file_larger_than_any_picture_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "padded.png").write_bytes(encoded(photograph(), "PNG") + bytes(5000))
    monkeypatch.setattr(images, "MOST_BYTES", 5000)
    with pytest.raises(InputError, match="larger than"):
        read_image(tmp_path / "padded.png")


# -------------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_written_is_read_back(tmp_path, channels):
    pixels = torch.randint(0, 256, (channels, 9, 7), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    write_png(tmp_path / "out.png", pixels)
    back, notes = read_image(tmp_path / "out.png")
    assert torch.equal(back, pixels)
    assert notes == ()
    assert [p.name for p in tmp_path.iterdir()] == ["out.png"]


@pytest.mark.parametrize("shape", [(2, 3, 3), (3, 3), (3, 0, 4), (1, 3, 4, 4)])
def test_other_tensors_are_not_written(tmp_path, shape):
    with pytest.raises(InputError, match="uint8 tensor of shape"):
        write_png(tmp_path / "out.png", torch.zeros(shape, dtype=torch.uint8))
    with pytest.raises(InputError, match="float32"):
        write_png(tmp_path / "out.png", torch.zeros(3, 4, 4))


def test_a_failed_write_keeps_the_old_file_and_leaves_no_half_one(tmp_path, monkeypatch):
    pixels = torch.zeros(3, 4, 4, dtype=torch.uint8)
    write_png(tmp_path / "out.png", pixels)

    def full_disk(self, handle, **options):
        handle.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", full_disk)
    with pytest.raises(InputError, match="No space left on device"):
        write_png(tmp_path / "out.png", pixels + 1)
    assert [p.name for p in tmp_path.iterdir()] == ["out.png"]
    assert torch.equal(read_image(tmp_path / "out.png")[0], pixels)


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        write_png(tmp_path / "nowhere" / "out.png", torch.zeros(3, 4, 4, dtype=torch.uint8))
