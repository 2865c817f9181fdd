"""Many image files to arrays, quickly: plain 8-bit images directly, anything unusual through images.py."""

from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError, features
from PIL import __version__ as pillow_version

from linocut.data.images import MOST_PIXELS, read_image
from linocut.errors import InputError


def decoder() -> dict[str, str]:
    """What decodes the files: two versions of libjpeg may differ by a level here and there."""
    return {"pillow": pillow_version, "libjpeg": str(features.version("jpg"))}


def read_rgb(path: Path, shortest: int | None = None) -> Image.Image:
    """The picture in 8-bit RGB, its size checked before its pixels are decoded.

    With `shortest`, a large JPEG may come at 1/2, 1/4 or 1/8 of its size, never with a side below it.
    """
    try:
        with Image.open(path, formats=("JPEG", "PPM")) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise InputError(f"{path}: {picture.width}x{picture.height} pixels, wanted at most {MOST_PIXELS}")
            if _is_plain(picture):
                if shortest is not None:
                    picture.draft(None, (shortest, shortest))
                picture.load()
                return picture if picture.mode == "RGB" else picture.convert("RGB")
    except InputError:
        raise
    except UnidentifiedImageError:
        pass  # another format: the careful reader says what it is
    except Exception as error:  # damaged bytes make decoders raise a dozen kinds, and the list grows
        raise InputError(f"{path}: not a whole picture ({error}). Fetch or make the file again.") from error
    pixels, _ = read_image(path)
    return Image.fromarray(pixels.expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy())


def _is_plain(picture: Image.Image) -> bool:
    """Whether this is a JPEG or PPM file of 8-bit grey or RGB pixels that stand as they are to be seen."""
    eight_bits = picture.format == "JPEG" or picture.tile[0][0] == "raw"  # type: ignore[attr-defined]
    return eight_bits and picture.mode in ("L", "RGB") and "exif" not in picture.info


def square(picture: Image.Image, size: int) -> Image.Image:
    """The centre square at size x size, by bilinear resampling with antialiasing."""
    width, height = picture.size
    if width == height == size:
        return picture
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return picture.resize((size, size), Image.Resampling.BILINEAR, box=(left, top, left + side, top + side))


def planes(picture: Image.Image) -> np.ndarray:
    """The picture as uint8 (3, H, W)."""
    return np.ascontiguousarray(np.asarray(picture).transpose(2, 0, 1))
