"""Functions of the samples of each feature, computed block by block so that memory stays small."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from metfa._arrays import is_floating, namespace, widen
from metfa._base.mapped import unload
from metfa._base.threaded import n_threads, threaded

__all__ = [
    "comparable",
    "each_block",
    "each_map",
    "feature_blocks",
    "n_hits",
    "read_features",
    "reduce_rows",
    "sums_over",
    "value_blocks",
]

Found = TypeVar("Found")

BLOCK_VALUES = 2**18  # 1 MiB of float32
READ_AT_ONCE = 2**23  # values of several blocks, so that the part of a sample is many pages of a file long
FILE_AT_ONCE = 2**26  # bytes of samples of which parts are read before their memory is given back
WORKED_AT_ONCE = 2**17  # values of a thread, whose copies in float64 stay in the processor's cache
SHARE = 16  # blocks for each thread, at least: together they hold a small part of the samples
LEAST_FEATURES = 1024  # a memory page of float32; narrower blocks would read each page of a file more than once
UNEVEN = 16  # values between samples: at even powers of two, those of a feature would share few lines of the cache
SUMMED_AT_ONCE = 2**15  # features whose sums stay in the processor's cache
WORTH_A_THREAD = 2**16  # features: to hand a smaller map to a thread takes as long as the work on it
BYTE = 2**8 - 1  # hits that a byte counts


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


def each_block(work: Callable[[np.ndarray], Any], values: np.ndarray, width: int) -> Iterator[Any]:
    """`work` of each of the `value_blocks`, in their order, by several threads."""

    def of(index: tuple[slice, ...]) -> Any:
        found = work(values[index].ravel())
        unload(values)
        return found

    return threaded(of, feature_blocks(values.shape, width))


def each_map(work: Callable[[np.ndarray], Found], maps: np.ndarray) -> Iterator[Found]:
    r"""`work` of each of the maps (n, \*features), in their order, by several threads where the maps are large."""
    return (map if maps[0].size < WORTH_A_THREAD else threaded)(work, maps)


def read_features(samples: np.ndarray, index: tuple[slice, ...]) -> np.ndarray:
    r"""A copy of some features of samples (n, \*features).

    Some samples at a time, for a system reads much more of a file than it is asked for, up to all of them.
    """
    shape = samples[0][index].shape
    size = math.prod(shape)
    part = np.empty((len(samples), size + UNEVEN), samples.dtype)[:, :size].reshape(len(samples), *shape)
    step = _in_memory(samples)
    for start in range(0, len(samples), step):
        part[start : start + step] = samples[(slice(start, start + step), *index)]
        unload(samples)
    return part


def _in_memory(samples: np.ndarray) -> int:
    """How many samples of a file may be in memory before it is given back."""
    return max(1, FILE_AT_ONCE * len(samples) // max(1, samples.nbytes))


def reduce_rows(reduce: Callable[..., tuple[Any, ...]], rows: Any, *per_feature: Any) -> tuple[Any, ...]:
    """The result of ``reduce(rows, *per_feature)``, which turns ``(*features, n)`` into ``(*features)`` arrays.

    NumPy arrays are reduced block by block, so a memory map is never loaded whole, and by several threads. Other
    libraries get one call.
    """
    *features, n = rows.shape
    width, size = max(LEAST_FEATURES, BLOCK_VALUES // n), math.prod(features)
    if not isinstance(rows, np.ndarray) or size <= width:
        return reduce(rows, *per_feature)

    def reduced(outer: tuple[slice, ...]) -> list[tuple[tuple[slice, ...], tuple[Any, ...]]]:
        part = np.moveaxis(read_features(np.moveaxis(rows, -1, 0), outer), 0, -1)  # as in the file
        given = [array[outer] for array in per_feature]
        return [
            (inner, reduce(part[inner], *(array[inner] for array in given)))
            for inner in feature_blocks(part.shape[:-1], max(1, WORKED_AT_ONCE // n))
        ]

    at_once = max(width, min(READ_AT_ONCE // n, size // (SHARE * n_threads())))
    places = list(feature_blocks(tuple(features), at_once))
    outputs: tuple[np.ndarray, ...] = ()
    for outer, found in zip(places, threaded(reduced, places), strict=True):
        for inner, results in found:
            outputs = outputs or tuple(np.empty(features, result.dtype) for result in results)
            for output, result in zip(outputs, results, strict=True):
                output[outer][inner] = result
    return outputs


def n_hits(hits: np.ndarray) -> np.ndarray:
    r"""Number of hits of each feature, of samples (n, \*features): bytes are quick to add."""
    counts = np.zeros(hits.shape[1:], np.int64)
    for start in range(0, len(hits), BYTE):
        counts += np.add.reduce(hits[start : start + BYTE].view(np.uint8), axis=0, dtype=np.uint8)
    return counts[()]


def sums_over(
    samples: np.ndarray, add: Callable[[np.ndarray, np.ndarray, Any], None], dtype: Any = float
) -> np.ndarray:
    r"""Sums over samples (n, \*features), one sample after the other; (\*features), by several threads.

    ``add(total, sample, index)`` adds a sample to the total, both of the features at `index`, in place.
    """
    totals, step = np.zeros(samples.shape[1:], dtype), _in_memory(samples)

    def summed(index: tuple[slice, ...]) -> None:
        part = totals[(*index, ...)]
        for number, sample in enumerate(samples):
            add(part, sample[index], index)
            if number % step == 0:
                unload(samples)

    for _ in threaded(summed, feature_blocks(totals.shape, SUMMED_AT_ONCE)):
        pass
    unload(samples)
    return totals
