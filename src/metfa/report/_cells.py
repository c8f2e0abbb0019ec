"""Samples in few bytes, which still give exact counts about many thresholds.

The number line is cut at some edges. A sample is kept as the cell in which it lies: cell 2k + 1 is edge k itself, and
cell 2k lies between this edge and the one before. So at each edge, ties included, the samples strictly above it are
those in higher cells, and the samples strictly below it those in lower cells, exactly as `metfa.stats` counts them.
Between edges nothing is known.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._base.mapped import unload
from metfa.results.moments import ends_of

__all__ = ["Samples", "edges_of", "packed", "placed"]

MOST_EDGES = 127  # cells 0..254, which fit a byte
MOST_CELLS = 2**24  # so many samples are kept one by one; more are kept as counts at fewer edges
COUNTS = 2**25  # most numbers that are kept as counts
MOST_EDGES_OF_COUNTS, FEWEST_EDGES = 15, 3
MOST_EDGES_OF_ROWS = 31  # of each row of a table, whose page holds many
BLOCK = 2**20  # values that are sorted into cells at once
DEFLATE = 6  # level: 9 takes several times as long and saves one percent
READ_AT_ONCE = 2**22  # values that are read from a file at once


@dataclass(frozen=True)
class Samples:
    """Samples of one input: the edges, and the cells as JSON data for the page."""

    edges: np.ndarray
    data: dict[str, Any]

    @classmethod
    def of(
        cls,
        values: np.ndarray,
        thresholds: Sequence[float],
        region: np.ndarray | None = None,
        zone: float = 0.0,
        n_rows: int = 1,
    ) -> Samples:
        """From samples (n, features); the `thresholds` become edges, and without any there are no edges.

        With a `region`, the features are those outside of it, and 0 stands at its places. Scores up to `zone` from 0
        count as 0, as in a decision about the sign (see `Terms.unit`). They share the page with those of the other
        `n_rows` of a table.
        """
        n, size = len(values), values[0].size if region is None else region.size
        one_by_one = n * size * n_rows <= MOST_CELLS
        most = max(FEWEST_EDGES, min(MOST_EDGES_OF_COUNTS, COUNTS // (2 * size * n_rows)))
        if one_by_one:
            most = MOST_EDGES if n_rows == 1 else MOST_EDGES_OF_ROWS
        low, high = ends_of(values)
        if region is not None:
            low, high = min(low, 0.0), max(high, 0.0)
        edges = edges_of(low, high, thresholds, most) if thresholds else np.empty(0)
        edges = edges[(edges == 0) | (np.abs(edges) > zone)]
        data = (
            _sorted_cells(placed(values, region), edges, zone)
            if one_by_one
            else _counts(_blocks(values, region, size, zone), edges, n, size)
        )
        return cls(edges, {"n": n, "size": size, **data})


def placed(values: np.ndarray, region: np.ndarray | None) -> np.ndarray:
    """Features (..., features) of an input; those of a context at their places in the map, with 0 in the object."""
    if region is None:
        return values.reshape(len(values), -1) if values.ndim > 1 else values
    whole = np.zeros((*values.shape[:-1], region.size), values.dtype)
    whole[..., ~region.ravel()] = values
    return whole


def packed(array: np.ndarray) -> str:
    """The array's bytes in C order, deflated (zlib's format), in base64."""
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), DEFLATE)).decode("ascii")


def edges_of(low: float, high: float, thresholds: Sequence[float], most: int) -> np.ndarray:
    """At most `most` edges, ascending: a grid from `low` to `high`; each threshold replaces the nearest edge."""
    wanted = np.unique(np.array([threshold for threshold in thresholds if np.isfinite(threshold)], dtype=np.float64))[
        :most
    ]
    grid = np.linspace(low, high, most + 2)[1:-1]
    grid = np.unique(grid[(grid > low) & (grid < high)])
    for threshold in wanted:
        if len(grid) >= most - len(wanted) + 1:
            grid = np.delete(grid, np.abs(grid - threshold).argmin())
    return np.unique(np.concatenate([grid, wanted]))


def _cells(values: np.ndarray, edges: np.ndarray, zone: float) -> np.ndarray:
    """Cell of each value; edges and values are compared in float64, which holds both."""
    values = values.astype(np.float64)
    values[np.abs(values) <= zone] = 0
    before = np.searchsorted(edges, values)
    at_edge = np.append(edges, np.nan)[before] == values
    return (2 * before + at_edge).astype(np.uint8)


def _sorted_cells(values: np.ndarray, edges: np.ndarray, zone: float) -> dict[str, Any]:
    """Cells of each feature's samples in ascending order; after the first, each as the difference to the one before."""
    cells = np.empty(values.shape, np.uint8)
    rows = max(1, BLOCK // values.shape[1])
    for start in range(0, len(values), rows):
        cells[start : start + rows] = _cells(values[start : start + rows], edges, zone)
    cells.sort(axis=0)
    cells[1:] = np.diff(cells, axis=0)
    return {"encoding": "cells", "cells": packed(cells)}


def _counts(blocks: Iterable[tuple[slice, np.ndarray]], edges: np.ndarray, n: int, size: int) -> dict[str, Any]:
    """Counts of each feature's samples below each edge, and up to it if any lie at one; each less the edge before."""
    dtype = np.dtype(np.uint8 if n < 2**8 else "<u2" if n < 2**16 else "<u4")
    below, up_to = np.empty((2, len(edges), size), dtype)
    for columns, block in blocks:
        for counts, compare, bounds in zip(
            (below, up_to), (np.less, np.less_equal), _bounds(edges, block), strict=True
        ):
            before = 0
            for count, bound in zip(counts, bounds, strict=True):
                found = _count(compare(block, bound), dtype)
                count[columns], before = found - before, found
    data: dict[str, Any] = {"encoding": "counts", "bits": 8 * dtype.itemsize, "below": packed(below)}
    if (below != up_to).any():
        data["upTo"] = packed(up_to)
    return data


def _blocks(
    values: np.ndarray, region: np.ndarray | None, size: int, zone: float
) -> Iterator[tuple[slice, np.ndarray]]:
    """Samples of some features at a time, in a dtype that is quick to compare with numbers of float64."""
    width = max(1, READ_AT_ONCE // len(values))
    outside = np.ones(size, bool) if region is None else ~region.ravel()
    stop = 0
    for start in range(0, size, width):
        columns = slice(start, min(start + width, size))
        within = outside[columns]
        first, stop = stop, stop + int(within.sum())
        block = np.ascontiguousarray(values.reshape(len(values), -1)[:, first:stop])
        unload(values)
        if region is not None:
            whole = np.zeros((len(block), len(within)), block.dtype)
            whole[:, within] = block
            block = whole
        block = block if block.dtype == np.float32 else block.astype(np.float64)
        if zone:
            block = np.where(np.abs(block) <= zone, block.dtype.type(0), block)
        yield columns, block


def _bounds(edges: np.ndarray, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the block's precision that compare as the edges do: ``v < e`` as the next up, ``v <= e`` next down."""
    with np.errstate(over="ignore"):
        nearest = edges.astype(block.dtype)
    up = np.where(nearest < edges, np.nextafter(nearest, block.dtype.type(np.inf)), nearest)
    down = np.where(nearest > edges, np.nextafter(nearest, block.dtype.type(-np.inf)), nearest)
    return up, down


def _count(hits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Number of hits in each column; a byte holds those of 255 rows, and bytes are quick to add."""
    counts = np.zeros(hits.shape[1], dtype)
    for start in range(0, len(hits), 255):
        counts += hits[start : start + 255].view(np.uint8).sum(axis=0, dtype=np.uint8)
    return counts
