"""How this package's loops are compiled: without the interpreter lock, and kept on disk where a folder allows it."""

from collections.abc import Callable

import numba


def compiled(function: Callable) -> Callable:
    """The function as machine code, cached beside the package or in the user's cache folder if either is writable."""
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # nowhere to keep it: compiled anew in each process
        return numba.njit(nogil=True, error_model="numpy")(function)
