"""Functions of the samples of each feature, computed block by block so that memory stays small."""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from metfa._arrays import is_floating, namespace, widen

__all__ = ["comparable", "feature_blocks", "reduce_rows", "release", "value_blocks"]

BLOCK_VALUES = 2**18  # 1 MiB of float32
LEAST_FEATURES = 1024  # a memory page of float32; narrower blocks would read each page of a file more than once


def comparable(rows: Any) -> Any:
    """`rows` in a dtype that is quick to compare and sort everywhere: halves as float32, booleans as 0 and 1."""
    xp = namespace(rows)
    if xp.isdtype(rows.dtype, "bool"):
        return xp.astype(rows, xp.uint8)
    return widen(rows) if is_floating(rows) else rows


def feature_blocks(shape: tuple[int, ...], width: int) -> Iterator[tuple[slice, ...]]:
    """Indices that cut an array of `shape` into blocks of at most `width` elements, whatever its memory layout."""
    if not shape:
        yield ()
        return
    rest = math.prod(shape[1:])
    step = max(1, width // max(1, rest))
    for start in range(0, shape[0], step):
        head = slice(start, start + step)
        if rest <= width:
            yield (head,)
        else:
            yield from ((head, *tail) for tail in feature_blocks(shape[1:], width))


def value_blocks(values: np.ndarray, width: int) -> Iterator[np.ndarray]:
    """All values, flat, in blocks of at most `width`. Pages of a file are given back after each block."""
    for index in feature_blocks(values.shape, width):
        yield values[index].ravel()
        release(values)


def release(values: np.ndarray) -> None:
    """Give the pages of a read-only memory map back, so that the process does not grow to the size of the file.

    They stay in the system's cache. Pages of a private copy could hold changes, so only maps of mode "r" are touched.
    """
    if not isinstance(values, np.memmap) or values.mode != "r" or not hasattr(mmap, "MADV_DONTNEED") or not values.size:
        return
    reach = [(side - 1) * stride for side, stride in zip(values.shape, values.strides, strict=True)]
    start = values.ctypes.data + sum(step for step in reach if step < 0)
    stop = values.ctypes.data + sum(step for step in reach if step > 0) + values.itemsize
    start -= start % mmap.PAGESIZE
    ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(stop - start), mmap.MADV_DONTNEED)


def reduce_rows(reduce: Callable[..., tuple[Any, ...]], rows: Any, *per_feature: Any) -> tuple[Any, ...]:
    """The result of ``reduce(rows, *per_feature)``, which turns ``(*features, n)`` into ``(*features)`` arrays.

    NumPy arrays are reduced block by block, so a memory map is never loaded whole. Other libraries get one call.
    """
    *features, n = rows.shape
    width = max(LEAST_FEATURES, BLOCK_VALUES // n)
    if not isinstance(rows, np.ndarray) or math.prod(features) <= width:
        return reduce(rows, *per_feature)
    outputs: tuple[np.ndarray, ...] = ()
    for index in feature_blocks(tuple(features), width):
        results = reduce(rows[index], *(array[index] for array in per_feature))
        outputs = outputs or tuple(np.empty(features, result.dtype) for result in results)
        for output, result in zip(outputs, results, strict=True):
            output[index] = result
        release(rows)
    return outputs
