"""Keep glibc from returning the memory of every batch to the system.

On Linux, glibc returns large freed blocks at once and maps new, zeroed pages for the next batch. The activations of a
network are such blocks, so each batch pays for its pages again: a third to a half of its time on a CPU. With higher
malloc thresholds the pages are kept. This is a setting of the whole process, so the library never makes it by itself;
the command line makes it at its start.
"""

from __future__ import annotations

import ctypes
import sys

__all__ = ["keep_freed_memory"]

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Raise glibc's mmap and trim thresholds for this process, so that freed memory is reused instead of returned.

    The process then keeps the largest amount of memory that it has needed. Call this before the first large allocation.

    Returns
    -------
    bool
        True if it took effect; False on systems without glibc (macOS, Windows, musl).
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    # Older glibc refuses more than 32 MiB for the mmap threshold.
    mapped = mallopt(_M_MMAP_THRESHOLD, 2**30) or mallopt(_M_MMAP_THRESHOLD, 2**25)
    return bool(mapped and mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))
