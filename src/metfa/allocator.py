"""Keep glibc from returning the memory of every batch to the system.

On Linux, glibc returns large freed blocks at once and maps new, zeroed pages for the next batch. The activations of a
network are such blocks, so each batch pays for its pages again: a third to a half of its time on a CPU. With higher
malloc thresholds the pages are kept.

These thresholds are of the whole process. So the library raises them while it samples a network on a CPU, and then
gives back what is free: :func:`freed_memory_kept`. For a whole process, such as a script that trains besides, call
:func:`keep_freed_memory`; the command line does. Who sets glibc's thresholds in the environment has them left alone.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["freed_memory_kept", "keep_freed_memory"]

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
# The most that glibc comes to by itself: it doubles as a process frees larger blocks, and never reports where it is.
_USUAL_MAP, _USUAL_TRIM = 2**25, 2**26
_OF_THE_CALLER = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")


class _Raised:
    """Who has raised the thresholds: this process for good, or so many runs that go on."""

    def __init__(self) -> None:
        self.lock, self.runs, self.for_good = threading.Lock(), 0, False
        self.resident = 0  # bytes, when the first of the runs began


_raised = _Raised()


def keep_freed_memory() -> bool:
    """Raise glibc's mmap and trim thresholds for this process, so that freed memory is reused instead of returned.

    The process then keeps the largest amount of memory that it has needed. Call this before the first large allocation.

    Returns
    -------
    bool
        True if it took effect; False on systems without glibc (macOS, Windows, musl).
    """
    glibc = _glibc()
    took_effect = glibc is not None and _raise(glibc)
    _raised.for_good |= took_effect
    return took_effect


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Context in which freed memory is reused; at the end of the outermost one, what is free goes back to the system.

    That is so if the process has grown by more than 64 MiB meanwhile, which glibc would keep, too. Then the thresholds
    are the highest that glibc comes to by itself. Where `keep_freed_memory` was called, or the
    environment has thresholds of glibc's, and on systems without it, nothing is changed.
    """
    glibc = None if _raised.for_good or _set_by_the_caller() else _glibc()
    if glibc is None:
        yield
        return
    with _raised.lock:
        _raised.runs += 1
        if _raised.runs == 1:
            _raised.resident = _resident()
            _raise(glibc)
    try:
        yield
    finally:
        with _raised.lock:
            _raised.runs -= 1
            if _raised.runs == 0 and not _raised.for_good:
                glibc.mallopt(_M_MMAP_THRESHOLD, _USUAL_MAP)
                glibc.mallopt(_M_TRIM_THRESHOLD, _USUAL_TRIM)
                if _resident() > _raised.resident + _USUAL_TRIM:  # it looks at every free block, which takes its time
                    glibc.malloc_trim(0)


def _resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def _glibc() -> Any:
    """The library of C, if it is glibc's for 64 bits."""
    if not sys.platform.startswith("linux") or sys.maxsize < 2**32:
        return None
    try:
        found = ctypes.CDLL("libc.so.6")
        return found if found.mallopt and found.malloc_trim else None
    except (OSError, AttributeError):
        return None


def _raise(glibc: Any) -> bool:
    # Older glibc refuses more than 32 MiB for the mmap threshold.
    mapped = glibc.mallopt(_M_MMAP_THRESHOLD, 2**30) or glibc.mallopt(_M_MMAP_THRESHOLD, 2**25)
    return bool(mapped and glibc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))


def _set_by_the_caller() -> bool:
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return any(name in os.environ for name in _OF_THE_CALLER) or "glibc.malloc." in tunables
