"""Arrays that stay in their files: the system reads what is used, and no file stays open for them."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import weakref
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["at_features", "mapped", "unload"]

WORTH_UNLOADING = 2**26  # bytes; smaller maps may stay


def mapped(path: Path, dtype: np.dtype, offset: int, shape: tuple[int, ...]) -> np.ndarray:
    """Memory map of a file, read-only, that is freed with its last view.

    It is a `numpy.memmap`, but one made by NumPy keeps the file open (Python's mmap copies the handle, and only from
    version 3.13 on can it be asked not to), so that some hundred results would use up what a process may open.
    """
    length = offset + math.prod(shape) * dtype.itemsize
    if os.name != "posix" or length == offset:
        return np.memmap(path, dtype, "r", offset, shape) if length > offset else np.empty(shape, dtype)
    library = _system()
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        place = library.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, handle, 0)
        if place in (None, ctypes.c_void_p(-1).value):
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), str(path))
    finally:
        os.close(handle)
    pages = (ctypes.c_char * length).from_address(place)
    weakref.finalize(pages, library.munmap, place, length).atexit = False
    numbers = np.frombuffer(memoryview(pages), dtype, math.prod(shape), offset)
    array: Any = numbers.reshape(shape).view(np.memmap)
    array.flags.writeable = False
    array.filename, array.offset, array.mode = path.resolve(), offset, "r"
    array._mmap = pages  # NumPy passes the attributes on to views only where this is set
    return array


def unload(array: np.ndarray) -> None:
    """Let the system take back the memory into which it has read parts of a large file of `mapped`.

    Call it after each part: then a file never fills more memory than one part of it. For any other array it does
    nothing. The numbers are read again when they are used.
    """
    pages = getattr(array, "_mmap", None)
    if isinstance(pages, ctypes.Array) and len(pages) > WORTH_UNLOADING and hasattr(mmap, "MADV_DONTNEED"):
        _system().madvise(ctypes.addressof(pages), len(pages), mmap.MADV_DONTNEED)


def at_features(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    r"""Samples (n, places) of some features of `values` (n, \*features), by their places in a flat map.

    One sample at a time, for a system reads much more of a file than it is asked for.
    """
    found = np.empty((len(values), len(places)), values.dtype)
    for into, sample in zip(found, values, strict=True):
        into[:] = sample.ravel()[places]
        unload(values)
    return found


@cache
def _system() -> ctypes.CDLL:
    """The functions of the C library for memory maps."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library
