"""A folder that only one call at a time may write into."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from metfa._base.locks import locked
from metfa._base.provenance import printable
from metfa._base.writing import opened

__all__ = ["LOCK", "Owner"]

LOCK = ".lock"


class Owner:
    """The right of this call to write into a folder, until it is given back or the process ends, however it ends.

    It is a lock of the operating system on the file ``.lock``, so what a killed process leaves of it stops nobody. On
    the few file systems without locks there is no such right, and whoever writes must see by itself what has changed.

    Raises
    ------
    BlockingIOError
        If another call, of this or another process, has it.
    ValueError
        If the file is a link.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / LOCK
        self._handle: int | None = None
        while self._handle is None:
            handle = opened(self._path, os.O_RDWR | os.O_CREAT)
            try:
                free = _locked(handle)
                who = "" if free else _read(handle)
                if free and os.fstat(handle).st_nlink:  # else its last owner has just removed it
                    self._handle = handle
            finally:
                if self._handle is None:
                    os.close(handle)
            if not free:
                raise BlockingIOError(
                    f"`{name}` is being written by another call{who}: {folder}; wait until it ends, or give another "
                    "folder"
                )
        with suppress(OSError):  # it is only for the message above
            os.truncate(self._handle, 0)
            os.write(self._handle, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def __enter__(self) -> Owner:
        return self

    def __exit__(self, *_: object) -> None:
        """Let others write."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            with suppress(OSError):
                self._path.unlink()
            os.close(handle)


def _locked(handle: int) -> bool:
    try:
        return locked(handle)
    except OSError:
        return True


def _read(handle: int) -> str:
    """Who has the lock, as it says itself; nothing if it has not yet."""
    try:
        text = printable(os.read(handle, 200).decode("utf-8", "replace"))
    except OSError:
        return ""
    return f" ({text})" if text else ""
