"""Keep glibc from handing every batch's memory back to the system.

On Linux, glibc returns large freed blocks at once and maps fresh, zeroed pages for the next batch. A network's
activations are such blocks, so each batch pays for its pages anew: a third to a half of its time on a CPU. Raising
malloc's thresholds keeps the pages. It is a setting of the whole process, so the library never does it by itself; the
command line does, at start.
"""

from __future__ import annotations

import ctypes
import sys

__all__ = ["keep_freed_memory"]

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Raise glibc's mmap and trim thresholds for this process, so that freed memory is reused instead of returned.

    The process keeps the largest amount of memory that it has needed. Call it before the first large allocation.

    Returns
    -------
    bool
        Whether it took effect: False on systems without glibc (macOS, Windows, musl).
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    # Older glibc refuses more than 32 MiB for the first one.
    mapped = mallopt(_M_MMAP_THRESHOLD, 2**30) or mallopt(_M_MMAP_THRESHOLD, 2**25)
    return bool(mapped and mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))
