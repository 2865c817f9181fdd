"""Image files in and out: whatever the bytes are, out comes a picture or an InputError that says why not."""

import contextlib
import io
import os
import stat
import threading
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError

from linocut.data.pixels import UnclearPixels, as_bytes
from linocut.errors import InputError

# Raster formats that Pillow decodes by itself. Left out on purpose: EPS (runs another program), ICO and ICNS
# (pictures inside hide their true size from the header), TGA (has no signature: garbage would pass for it),
# JPEG 2000 (silently cuts 16-bit colour to its high byte).
FORMATS = ("AVIF", "BMP", "DIB", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
MOST_PIXELS = 100_000_000
MOST_BYTES = 2**30
LARGEST_SPARE_TILE = 4096 * 4096
COMPRESSION = 3  # on pictures of few colours 1.6 times as fast as the default of 6, and no larger


def read_image(path: str | os.PathLike[str]) -> tuple[torch.Tensor, tuple[str, ...]]:
    """The picture as uint8 (C,H,W), upright, and notes on all that was changed to get there.

    C is 1 for grey files and 3 for all others. Above 100 megapixels it is refused from the header.
    The bytes decide the format, not the name. Whatever is wrong, the only exception is InputError.
    """
    path = Path(path)
    try:
        with _pillow_warnings.silenced(), _open_regular(path) as handle:
            pixels, notes = _decode(handle, path)
    except InputError:
        raise
    except UnclearPixels as error:
        raise InputError(f"{path}: {error}") from error
    except UnidentifiedImageError as error:
        wanted = ", ".join(FORMATS)
        raise InputError(f"{path}: not an image that can be read (one of {wanted} is wanted)") from error
    except Image.DecompressionBombError as error:
        raise InputError(f"{path}: {_TOO_LARGE}") from error
    except MemoryError as error:
        raise InputError(f"{path}: there is not enough memory to decode it") from error
    except Exception as error:  # decoders raise some dozen kinds on damaged bytes, and the list grows
        reason = str(error) or type(error).__name__
        raise InputError(f"{path}: damaged, truncated or not an image ({reason})") from error
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1))), tuple(notes)


_TOO_LARGE = f"the header announces more than {MOST_PIXELS // 10**6} megapixels; make it smaller first"


def image_suffixes() -> set[str]:
    """The file name endings ('.png') of the formats that `read_image` decodes, in lower case."""
    return {suffix for suffix, kind in Image.registered_extensions().items() if kind in FORMATS}


def _open_regular(path: Path) -> IO[bytes]:
    """The file opened for reading; folders, pipes and devices are refused: reading them may never end."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{path}: not a file")
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty (0 bytes)")
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _decode(handle: IO[bytes], path: Path) -> tuple[np.ndarray, list[str]]:
    """Pixels (H,W,C) and notes. Orientation and frames are read after the pixels: loading settles both.

    After the look at the header, everything comes from a copy in memory: a compressed TIFF is mapped by its decoder,
    and a file that another process cuts short meanwhile would end this one with a bus error.
    """
    _open_picture(handle, path)
    size = os.fstat(handle.fileno()).st_size
    if size > MOST_BYTES:
        raise InputError(f"{path}: larger than {MOST_BYTES // 2**20} MiB, which no picture within the limits needs")
    handle.seek(0)
    content = io.BytesIO(handle.read(size))
    picture = _open_picture(content, path)
    _refuse_odd_tiff(picture, path)
    notes = [*_wrong_name(path, picture.format or "")]
    pixels, changes = as_bytes(picture, content)
    turned, turn = _upright(pixels, picture)
    notes += [*changes, *turn]
    frames = _frames(picture)
    if frames > 1:
        notes.append(f"the first of {frames} frames is used")
    return turned, notes


def _open_picture(stream: IO[bytes], path: Path) -> Image.Image:
    """The picture with its header read and none of its pixels."""
    Image.init()
    picture = Image.open(stream, formats=[name for name in FORMATS if name in Image.OPEN])
    if picture.width * picture.height > MOST_PIXELS:
        raise InputError(f"{path}: {_TOO_LARGE}")
    return picture


def _refuse_odd_tiff(picture: Image.Image, path: Path) -> None:
    """Refuse two lies that a TIFF can tell and Pillow believes.

    Fewer strips than the height needs: the rest would stay black. Tiles far larger than the picture: the decoder
    would make room for a whole one.
    """
    if picture.format != "TIFF":
        return
    pixels = picture.width * picture.height
    boxes = [tile[1] for tile in picture.tile]  # type: ignore[attr-defined]
    if sum((right - left) * (lower - upper) for left, upper, right, lower in boxes) < pixels:
        raise InputError(f"{path}: its strips cover only a part of the picture")
    tags = picture.tag_v2  # type: ignore[attr-defined]
    if tags.get(322, 0) * tags.get(323, 0) > max(pixels, LARGEST_SPARE_TILE):
        raise InputError(f"{path}: its tiles have more pixels than the picture, by megapixels")


_SAME_FAMILY = {"MPO": "JPEG", "DIB": "BMP"}


def _wrong_name(path: Path, found: str) -> Iterator[str]:
    """A note when the file's name promises another format than its bytes hold."""
    promised = Image.registered_extensions().get(path.suffix.lower(), "")
    if path.suffix and _SAME_FAMILY.get(promised, promised) != _SAME_FAMILY.get(found, found):
        yield f"named {path.suffix} but holds {found}"


# EXIF orientation -> (rows upside down, columns mirrored, rows and columns exchanged afterwards)
_ORIENTATIONS = {
    2: (False, True, False),
    3: (True, True, False),
    4: (True, False, False),
    5: (False, False, True),
    6: (True, False, True),
    7: (True, True, True),
    8: (False, True, True),
}


def _upright(pixels: np.ndarray, picture: Image.Image) -> tuple[np.ndarray, list[str]]:
    """The pixels as the camera meant them to be seen."""
    try:
        orientation = picture.getexif().get(0x0112, 1)
    except Exception:  # the pixels are whole, and a damaged EXIF block says nothing about them
        return pixels, ["its EXIF block cannot be read, so no orientation is applied"]
    if orientation not in _ORIENTATIONS:
        return pixels, []
    upside_down, mirrored, exchanged = _ORIENTATIONS[orientation]
    pixels = pixels[:: -1 if upside_down else 1, :: -1 if mirrored else 1]
    return (pixels.swapaxes(0, 1) if exchanged else pixels), [f"EXIF orientation {orientation} applied"]


def _frames(picture: Image.Image) -> int:
    try:
        return getattr(picture, "n_frames", 1)
    except Exception:  # a later frame is damaged; the first one, which is all we use, is decoded already
        return 2


class _PillowWarnings:
    """Pillow's warnings about odd files, silenced while any thread decodes.

    `warnings.catch_warnings` alone is not made for threads: the one that leaves first would restore the
    filters under the others. Here the first thread in saves them and the last one out restores them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._saved = warnings.catch_warnings()

    @contextlib.contextmanager
    def silenced(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._saved = warnings.catch_warnings()
                self._saved.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._saved.__exit__(None, None, None)


_pillow_warnings = _PillowWarnings()


def write_png(path: str | os.PathLike[str], pixels: torch.Tensor) -> None:
    """Write uint8 (C,H,W), C = 1 or 3, as a PNG file that is either whole or not there.

    The bytes go to a neighbour first and take the name when complete; a failure leaves nothing behind.
    """
    path = Path(path)
    if pixels.dtype != torch.uint8 or pixels.dim() != 3 or pixels.shape[0] not in (1, 3) or pixels.numel() == 0:
        raise InputError(
            f"{path}: a PNG is written from a uint8 tensor of shape (1 or 3, H, W), "
            f"got {pixels.dtype} of shape {tuple(pixels.shape)}"
        )
    array = pixels.detach().cpu().permute(1, 2, 0).contiguous().numpy()
    picture = Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)
    save_png(path, picture)


def save_png(path: Path, picture: Image.Image) -> None:
    """Write a Pillow picture under the same promise as `write_png`."""
    part = path.with_name(f".linocut-{uuid.uuid4().hex}.part")
    try:
        try:
            with part.open("xb") as handle:
                picture.save(handle, format="PNG", compress_level=COMPRESSION)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
