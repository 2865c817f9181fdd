"""How this process holds the memory that its tensors gave back."""

import ctypes
import sys

# Of glibc's malloc.h. From the first size on memory comes from the system and goes back to it at once; above the
# second what is free at the heap's end goes back too. -1, the largest size there is, means: neither, ever.
M_MMAP_THRESHOLD, M_TRIM_THRESHOLD = -3, -1
NEVER, MOST_OF_OLDER_VERSIONS = -1, 32 << 20  # some refuse a larger size for the first


def keep_freed_memory() -> None:
    """From now on freed memory stays with the process, where its C library is glibc; elsewhere nothing changes.

    A network's activations are tens of megabytes that come and go with every pass. Handed back to the system each
    time, they must be cleared and mapped again page by page; kept, large batches on a CPU run up to 1.8 times as fast
    (docs/performance.md).
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    if not mallopt(M_MMAP_THRESHOLD, NEVER):
        mallopt(M_MMAP_THRESHOLD, MOST_OF_OLDER_VERSIONS)
    mallopt(M_TRIM_THRESHOLD, NEVER)
