"""From whatever Pillow decoded to 8 bits a channel: every change is exact, and said."""

from typing import IO

import numpy as np
from PIL import Image


class UnclearPixels(Exception):
    """The stored numbers have no one meaning as a picture; the message says which and what to do."""


ON_WHITE = "transparent parts laid on white"
SCALED = "16 bits a channel scaled to 8 (v / 257, rounded)"
GREY_MODES = ("1", "L", "LA", "La")


def as_bytes(picture: Image.Image, handle: IO[bytes]) -> tuple[np.ndarray, list[str]]:
    """The picture as uint8 (H,W,C), C = 1 for grey and 3 otherwise, and what had to be changed."""
    mode, raw = picture.mode, _raw_mode(picture)
    if mode == "F":
        raise UnclearPixels("its pixels are floats, which have no fixed black and white: save it with 8 bits first")
    if mode == "LAB":
        raise UnclearPixels("its colours are CIE Lab: save it as RGB first")
    if mode.startswith("I"):
        return _sixteen_bit_grey(picture, raw)
    if "16" in raw:
        return _sixteen_bit_color(picture, raw, handle)
    if "transparency" in picture.info or mode in ("LA", "La", "PA", "RGBA", "RGBa"):
        return _on_white(picture.convert("LA" if mode in GREY_MODES else "RGBA"))
    if mode in GREY_MODES:
        return np.array(picture.convert("L"))[:, :, None], []
    notes = ["CMYK converted to RGB without a colour profile"] if mode == "CMYK" else []
    return np.array(picture.convert("RGB")), notes


def _raw_mode(picture: Image.Image) -> str:
    """How the file stores a pixel, as Pillow's decoders name it ('RGB;16B'); empty where it has no name."""
    tiles = getattr(picture, "tile", None)
    arguments = tiles[0][3] if tiles else ""
    first = arguments[0] if isinstance(arguments, tuple) and arguments else arguments
    return first if isinstance(first, str) else ""


def _on_white(picture: Image.Image) -> tuple[np.ndarray, list[str]]:
    """LA or RGBA over white; Pillow's blend rounds (c·a + 255·(255-a)) / 255 to nearest, exactly."""
    alpha = picture.getchannel("A")
    solid = "L" if picture.mode == "LA" else "RGB"
    paper = Image.new(solid, picture.size, "white")
    paper.paste(picture.convert(solid), mask=alpha)
    pixels = np.array(paper)
    opaque = alpha.getextrema() == (255, 255)
    return pixels[:, :, None] if solid == "L" else pixels, [] if opaque else [ON_WHITE]


def _sixteen_bit_grey(picture: Image.Image, raw: str) -> tuple[np.ndarray, list[str]]:
    """Unsigned 16-bit grey, where the file leaves no doubt that 0 is black and 65535 white."""
    clear = picture.format in ("PNG", "PPM")
    if picture.format == "TIFF":
        tags = picture.tag_v2  # type: ignore[attr-defined]
        clear = picture.mode.startswith("I;16") and tags.get(258) == (16,) and tags.get(262) == 1
    if not clear:
        raise UnclearPixels(
            f"it stores whole numbers ({raw or picture.mode}) that are not plain unsigned 16-bit grey: "
            "save it with 8 bits first"
        )
    values = np.array(picture).astype(np.uint32)
    hidden = picture.info.get("transparency")
    opaque = np.full(values.shape, 65535, np.uint32) if hidden is None else np.where(values == hidden, 0, 65535)
    return _scale(values[:, :, None], opaque)


def _sixteen_bit_color(picture: Image.Image, raw: str, handle: IO[bytes]) -> tuple[np.ndarray, list[str]]:
    """16-bit colour of a PNG. Pillow keeps the high bytes only, so the low ones come from a second pass.

    The second pass names the other byte order (or, for grey with alpha, four plain bytes a pixel).
    """
    other = {"RGB;16B": "RGB;16L", "RGBA;16B": "RGBA;16L", "LA;16B": "RGBA"}.get(raw)
    if picture.format != "PNG" or other is None:
        raise UnclearPixels(
            f"16 bits a channel ({raw}) cannot be read exactly from a {picture.format} file: save a PNG"
        )
    picture.load()
    again = Image.open(handle, formats=["PNG"])
    again.tile = [again.tile[0]._replace(args=other)]  # type: ignore[attr-defined]
    if raw == "LA;16B":
        pairs = np.array(again).astype(np.uint32)
        values = pairs[:, :, 0::2] * 256 + pairs[:, :, 1::2]
    else:
        values = np.array(picture).astype(np.uint32) * 256 + np.array(again)
    hidden = picture.info.get("transparency")
    if values.shape[2] in (2, 4):
        return _scale(values[:, :, :-1], values[:, :, -1])
    opaque = np.full(values.shape[:2], 65535, np.uint32)
    if hidden is not None:
        opaque[(values == np.array(hidden)).all(axis=2)] = 0
    return _scale(values, opaque)


def _scale(values: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Sixteen bits laid on white, then rint(v / 257): white stays white, and no value sits on a tie."""
    notes = [SCALED]
    pixels = np.empty(values.shape, np.uint8)
    transparent = bool((alpha < 65535).any())
    for channel in range(values.shape[2]):
        v = values[:, :, channel].astype(np.float64)
        if transparent:
            v = (v * alpha + 65535.0 * (65535.0 - alpha)) / 65535.0
        pixels[:, :, channel] = np.rint(v / 257)
    return pixels, [*notes, ON_WHITE] if transparent else notes
