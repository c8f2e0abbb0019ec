"""Locks of the operating system on open files: they end with the process, however it ends."""

from __future__ import annotations

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["locked"]

FAR = 2**30  # where Windows locks a byte, so that what is in the file can still be read


def locked(handle: int) -> bool:
    """Lock an open file for this opening of it alone, without waiting; returns whether that was possible.

    Raises
    ------
    OSError
        If the file system has no locks.
    """
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            _lock_on_windows(handle)
    except (BlockingIOError, PermissionError):  # Windows says the latter
        return False
    return True


def _lock_on_windows(handle: int) -> None:
    import msvcrt
    import os

    os.lseek(handle, FAR, os.SEEK_SET)
    msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # pyright: ignore[reportAttributeAccessIssue]
    os.lseek(handle, 0, os.SEEK_SET)
