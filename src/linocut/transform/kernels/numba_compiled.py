"""How this package's loops are compiled: without the interpreter lock, and kept on disk where a folder allows it."""

import contextlib
from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable) -> Callable:
    """The function as machine code, cached beside the package or in the user's cache folder if either is writable."""
    try:
        loop = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # nowhere to keep it: compiled anew in each process
        return numba.njit(nogil=True, error_model="numpy")(function)
    forgive(getattr(loop, "_cache", None))  # Numba's own affair: without it a damaged cache is an error again, no more
    return loop


def forgive(cache: Any) -> None:
    """A cache that fails, of a torn file or on a full disk, costs a compilation from now on, and never the result."""
    load, save = getattr(cache, "load_overload", None), getattr(cache, "save_overload", None)
    if load is None or save is None:
        return

    def load_or_compile(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:  # unpickling what is left of a file can fail in any way
            with contextlib.suppress(Exception):
                cache.flush()  # else every later process would compile too
            return None

    def save_if_possible(*arguments: Any) -> None:
        with contextlib.suppress(Exception):
            save(*arguments)

    cache.load_overload, cache.save_overload = load_or_compile, save_if_possible
