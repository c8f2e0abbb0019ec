"""Functions of the samples of each feature, computed block by block so that memory stays small."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from metfa._arrays import is_floating, namespace, widen
from metfa._base.mapped import unload

__all__ = ["comparable", "feature_blocks", "read_features", "reduce_rows", "value_blocks"]

BLOCK_VALUES = 2**18  # 1 MiB of float32
READ_AT_ONCE = 2  # blocks, so that the part of a sample is many pages of a file long
FILE_AT_ONCE = 2**26  # bytes of samples of which parts are read before their memory is given back
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
        unload(values)


def read_features(samples: np.ndarray, index: tuple[slice, ...]) -> np.ndarray:
    r"""A copy of some features of samples (n, \*features).

    Some samples at a time, for a system reads much more of a file than it is asked for, up to all of them.
    """
    part = np.empty((len(samples), *samples[0][index].shape), samples.dtype)
    step = max(1, FILE_AT_ONCE * len(samples) // max(1, samples.nbytes))
    for start in range(0, len(samples), step):
        part[start : start + step] = samples[(slice(start, start + step), *index)]
        unload(samples)
    return part


def reduce_rows(reduce: Callable[..., tuple[Any, ...]], rows: Any, *per_feature: Any) -> tuple[Any, ...]:
    """The result of ``reduce(rows, *per_feature)``, which turns ``(*features, n)`` into ``(*features)`` arrays.

    NumPy arrays are reduced block by block, so a memory map is never loaded whole. Other libraries get one call.
    """
    *features, n = rows.shape
    width = max(LEAST_FEATURES, BLOCK_VALUES // n)
    if not isinstance(rows, np.ndarray) or math.prod(features) <= width:
        return reduce(rows, *per_feature)
    outputs: tuple[np.ndarray, ...] = ()
    for outer in feature_blocks(tuple(features), READ_AT_ONCE * width):
        part = np.moveaxis(read_features(np.moveaxis(rows, -1, 0), outer), 0, -1)  # as in the file
        given = [array[outer] for array in per_feature]
        for inner in feature_blocks(part.shape[:-1], width):
            results = reduce(part[inner], *(array[inner] for array in given))
            outputs = outputs or tuple(np.empty(features, result.dtype) for result in results)
            for output, result in zip(outputs, results, strict=True):
                output[outer][inner] = result
    return outputs
