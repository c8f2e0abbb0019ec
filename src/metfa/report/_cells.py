"""Samples in few bytes, which still give exact counts about many thresholds.

The number line is cut at some edges. A sample is kept as the cell in which it lies: cell 2k + 1 is edge k itself, and
cell 2k lies between this edge and the one before. So at each edge, ties included, the samples strictly above it are
those in higher cells, and the samples strictly below it those in lower cells, exactly as `metfa.stats` counts them.
Between edges nothing is known.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._base.threaded import threaded
from metfa.report._planes import as_words, packed_planes
from metfa.results.moments import ends_of
from metfa.stats.blocks import feature_blocks, n_hits, read_features

__all__ = ["Samples", "edges_of", "packed", "placed"]

MOST_EDGES = 127  # cells 0..254, which fit a byte
MOST_CELLS = 2**24  # so many samples are kept one by one; more are kept as counts at fewer edges
COUNTS = 2**25  # most numbers that are kept as counts
MOST_EDGES_OF_COUNTS, FEWEST_EDGES = 15, 3
MOST_EDGES_OF_ROWS = 31  # of each row of a table, whose page holds many
BLOCK = 2**20  # values that are sorted into cells at once
DEFLATE = 6  # level: 9 takes several times as long and saves one percent
READ_AT_ONCE = 2**22  # values that are read from a file at once
NARROW = 2**10  # features whose scores stay in the processor's cache while they are counted at each edge


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
        r"""From samples (n, features); the `thresholds` become edges, and without any there are no edges.

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
            _sorted_cells(placed(values, region), edges, zone) if one_by_one else _counts(values, edges, region, zone)
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


def _counts(values: np.ndarray, edges: np.ndarray, region: np.ndarray | None, zone: float) -> dict[str, Any]:
    """Counts of each feature's samples below each edge, and of those at it if there are any, as planes."""
    n, shape = len(values), values.shape[1:] if region is None else region.shape
    flat = values.reshape(n, -1)
    below, at = np.zeros((2, len(edges), flat.shape[1]), as_words(n))
    precise = values.dtype if values.dtype == np.float32 else np.dtype(np.float64)  # quick, and holds every score
    bounds, held = _bounds(edges, precise)

    def count(columns: slice) -> None:
        block = read_features(flat, (columns,))
        for start in range(0, block.shape[1], NARROW):
            scores = block[:, start : start + NARROW].astype(precise)
            here = slice(columns.start + start, columns.start + start + scores.shape[1])
            if zone:
                scores[np.abs(scores) <= zone] = 0
            for edge, bound in enumerate(bounds):
                below[edge, here] = n_hits(scores < bound, below.dtype)
                if held[edge] and (equal := scores == bound).any():
                    at[edge, here] = n_hits(equal, at.dtype)

    for _ in threaded(count, (index for (index,) in feature_blocks(flat.shape[1:], max(1, READ_AT_ONCE // n)))):
        pass
    if region is not None:  # whose scores are 0
        below, at = (
            _around(counts, region, n * held_by_0.astype(counts.dtype))
            for counts, held_by_0 in ((below, edges > 0), (at, edges == 0))
        )
    data = {"encoding": "counts", "below": packed_planes(below.reshape(-1, *shape))}
    return {**data, "at": packed_planes(at.reshape(-1, *shape))} if at.any() else data


def _around(counts: np.ndarray, region: np.ndarray, of_region: np.ndarray) -> np.ndarray:
    """Counts (edges, features) of a context at their places in the map, and those of each feature of its object."""
    whole = np.empty((len(counts), region.size), counts.dtype)
    whole[:, ~region.ravel()], whole[:, region.ravel()] = counts, of_region[:, None]
    return whole


def _bounds(edges: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The least number of a precision that is not below each edge; whether it is the edge, so that scores may be at it.

    A score of this precision is below an edge if it is below this number.
    """
    with np.errstate(over="ignore"):
        nearest = edges.astype(dtype)
    return np.where(nearest < edges, np.nextafter(nearest, dtype.type(np.inf)), nearest), nearest == edges
