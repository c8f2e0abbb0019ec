"""Planes of whole numbers in few bytes: each number less what the plane before and its neighbours let expect.

A plane is written as the difference d to the plane before. Of these, each is written as the difference to the mean,
rounded down, of the one to its left and the one above it. Small differences of both signs get small numbers (0, -1, 1,
-2, ... are 0, 1, 2, 3, ...), and all low bytes come before all higher ones, which are nearly all 0.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from metfa._base.threaded import threaded

__all__ = ["as_words", "packed_planes"]

MOST_MEMORY = 9  # zlib's largest level of memory: longer pieces have a code of their own
MOST_OF_16 = 2**14  # numbers up to it, of which sums of two and twice a difference fit 16 bits


def as_words(largest: int) -> np.dtype:
    """The dtype in which planes of numbers from 0 to `largest` are written."""
    return np.dtype(np.int16 if largest < MOST_OF_16 else np.int32)


def packed_planes(planes: np.ndarray) -> dict[str, Any]:
    """Planes (k, ..., columns) of `as_words`, as the page reads them: a text for each, bits and columns."""
    bits, columns = 8 * planes.itemsize, planes.shape[-1]

    def text(number: int) -> str:
        found = planes[number].ravel()
        if number:
            found = found - planes[number - 1].ravel()
        left = np.concatenate([found[:1] * 0, found[:-1]])
        above = np.concatenate([left[:columns], found[:-columns]])
        rest = found - ((left + above) >> 1)
        folded = (rest << 1) ^ (rest >> (bits - 1))
        by_byte = folded.astype(folded.dtype.newbyteorder("<")).view(np.uint8).reshape(-1, bits // 8).T
        return _deflated(np.ascontiguousarray(by_byte).tobytes())

    return {"bits": bits, "columns": columns, "planes": list(threaded(text, range(len(planes))))}


def _deflated(content: bytes) -> str:
    """In zlib's format and base64. Noise has no repeats to look for but those of one byte, which saves most time."""
    deflate = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, MOST_MEMORY, zlib.Z_RLE)
    return base64.b64encode(deflate.compress(content) + deflate.flush()).decode("ascii")
