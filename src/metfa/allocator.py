"""Keep glibc from returning the memory of every batch to the system.

On Linux, glibc returns large freed blocks at once and maps new, zeroed pages for the next batch. The activations of a
network are such blocks, so each batch pays for its pages again: a third to a half of its time on a CPU. With higher
malloc thresholds the pages are kept.

These thresholds are of the whole process. So the library raises them while it samples a network on a CPU, and puts
them back: :func:`freed_memory_kept`. Around a loop of your own, open it yourself. Or call :func:`keep_freed_memory`
once for the whole process, as the command line does. Thresholds in the environment are left alone.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
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
# A process that has grown by more gives back what is free. After smaller runs glibc keeps about as much by itself, and
# the next run would pay for what was given back.
_KEPT = 2**30
_OF_THE_CALLER = {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_"}
_TUNABLES = re.compile(r"glibc\.malloc\.(mmap_threshold|trim_threshold|top_pad|mmap_max)\b")


class _Raised:
    """Who has raised the thresholds: this process for good, or the runs that go on."""

    def __init__(self) -> None:
        self.for_good = False
        self.afresh()

    def afresh(self) -> None:
        """As in a process that was forked: its lock may be another thread's, which is not there."""
        self.lock, self.runs = threading.Lock(), set[object]()
        self.resident = 0  # bytes, when the first of the runs began


_raised = _Raised()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _raised.afresh())


def keep_freed_memory() -> bool:
    """Raise glibc's mmap and trim thresholds for this process, so that freed memory is reused instead of returned.

    The process then keeps the largest amount of memory that it has needed. Call this before the first large allocation.

    Returns
    -------
    bool
        True if it took effect; False on systems without glibc (macOS, Windows, musl).
    """
    glibc = _glibc()
    with _raised.lock:
        took_effect = glibc is not None and _raise(glibc)
        _raised.for_good |= took_effect
    return took_effect


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Context in which freed memory is reused.

    After the outermost one the thresholds are the highest that glibc comes to by itself. If the process has grown by
    more than 1 GiB, what is free goes back to the system. Where `keep_freed_memory` was called, or the environment has
    thresholds of glibc's, and on systems without it, nothing is changed.

    Notes
    -----
    Thresholds that a program has set by ``mallopt`` cannot be read, and are replaced. Such a program calls
    `keep_freed_memory`.
    """
    glibc = None if _raised.for_good or _set_by_the_caller() else _glibc()
    if glibc is None:
        yield
        return
    run = object()
    try:
        with _raised.lock:
            _raised.runs.add(run)
            if len(_raised.runs) == 1:
                _raised.resident = _resident()
                _raise(glibc)
        yield
    finally:
        with _raised.lock:
            _raised.runs.discard(run)
            last = not (_raised.runs or _raised.for_good)
            if last:
                glibc.mallopt(_M_MMAP_THRESHOLD, _USUAL_MAP)
                glibc.mallopt(_M_TRIM_THRESHOLD, _USUAL_TRIM)
        if last and _resident() > _raised.resident + _KEPT:
            glibc.malloc_trim(0)


def _resident() -> int:
    """Bytes of memory that this process has; 0 where nothing says so."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return 0


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
    return not _OF_THE_CALLER.isdisjoint(os.environ) or _TUNABLES.search(tunables) is not None
