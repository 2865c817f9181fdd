"""Bytes made small and whole again: the xz format, whose own checksum tells a flipped bit."""

import lzma
from concurrent.futures import ThreadPoolExecutor

from linocut.errors import InputError

SUFFIX = ".xz"
PRESET = 6
PIECE = 1 << 22  # bytes that one thread takes at a time; the pieces are streams of one file
MOST = 1 << 30  # bytes that a file may hold: a few kilobytes can be made to hold any number


def compressed(content: bytes) -> bytes:
    """The same bytes in the xz format; equal bytes give an equal file, whatever the number of threads."""
    pieces = [content[first : first + PIECE] for first in range(0, len(content), PIECE)] or [b""]
    if len(pieces) == 1:
        return lzma.compress(content, preset=PRESET)
    with ThreadPoolExecutor() as pool:
        return b"".join(pool.map(lambda piece: lzma.compress(piece, preset=PRESET), pieces))


def decompressed(content: bytes, source: object) -> bytes:
    """The bytes again; `source` names the file in complaints.

    Stream by stream: lzma.decompress takes a damaged second stream for rubbish behind the first, and leaves it out.
    """
    pieces: list[bytes] = []
    try:
        while content or not pieces:
            stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)
            pieces.append(stream.decompress(content, max_length=MOST + 1))
            if sum(map(len, pieces)) > MOST:
                raise lzma.LZMAError(f"it holds more than {MOST:,} bytes")
            if not stream.eof:
                raise lzma.LZMAError("it ends too soon")
            content = stream.unused_data
    except lzma.LZMAError as reason:
        raise InputError(f"{source} cannot be read ({reason}): it is damaged") from None
    return b"".join(pieces)
