"""Samples in few bytes, which still give exact counts about many thresholds.

The number line is cut at some edges. A sample is kept as the cell in which it lies: cell 2k + 1 is edge k itself, and
cell 2k lies between this edge and the one before. So at each edge, ties included, the samples strictly above it are
those in higher cells, and the samples strictly below it those in lower cells, exactly as `metfa.stats` counts them.
Between edges nothing is known.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa.report._planes import as_words, packed_planes
from metfa.results.moments import ends_of
from metfa.stats.sorted_once import counts_below

__all__ = ["Edges", "Samples", "edges_of", "packed", "placed"]

MOST_EDGES = 127  # cells 0..254, which fit a byte
MOST_CELLS = 2**24  # so many samples are kept one by one; more are kept as counts at fewer edges
COUNTS = 2**25  # most numbers that are kept as counts
MOST_EDGES_OF_COUNTS, FEWEST_EDGES = 15, 3
MOST_EDGES_OF_ROWS = 31  # of each row of a table, whose page holds many
BLOCK = 2**20  # values that are sorted into cells at once
DEFLATE = 6  # level: 9 takes several times as long and saves one percent


@dataclass(frozen=True)
class Edges:
    """Where the number line is cut, and how samples are kept: one by one, or as counts.

    Scores up to `zone` from 0 count as 0, as in a decision about the sign (see `Terms.unit`).
    """

    numbers: np.ndarray
    one_by_one: bool
    zone: float = 0.0

    @classmethod
    def of(
        cls,
        values: np.ndarray,
        thresholds: Sequence[float],
        region: np.ndarray | None = None,
        zone: float = 0.0,
        n_rows: int = 1,
        ends: tuple[float, float] | None = None,
    ) -> Edges:
        r"""For samples (n, \*features); the `thresholds` become edges, and without any there are no edges.

        With a `region`, the features are those outside of it, and 0 stands at its places. They share the page with
        those of the other `n_rows` of a table. `ends`: the lowest and the highest sample, where these are known.
        """
        n, size = len(values), values[0].size if region is None else region.size
        one_by_one = n * size * n_rows <= MOST_CELLS
        most = max(FEWEST_EDGES, min(MOST_EDGES_OF_COUNTS, COUNTS // (2 * size * n_rows)))
        if one_by_one:
            most = MOST_EDGES if n_rows == 1 else MOST_EDGES_OF_ROWS
        low, high = ends or ends_of(values)
        if region is not None:
            low, high = min(low, 0.0), max(high, 0.0)
        edges = edges_of(low, high, thresholds, most) if thresholds else np.empty(0)
        return cls(edges[(edges == 0) | (np.abs(edges) > zone)], one_by_one, zone)

    def heights(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Numbers for scores of a dtype, and the places among them of two for each edge, (2, edges).

        The scores below the first are those below the edge, and the scores below the second are those at it too. Most
        edges are no number of the dtype. Then both are the same: the next number above the edge.
        """
        precise = np.float32 if dtype in (np.float16, np.float32) else np.float64
        with np.errstate(over="ignore"):
            nearest = self.numbers.astype(precise)
        above, zone = np.nextafter(nearest, precise(np.inf)), precise(self.zone)
        below = np.where(nearest < self.numbers, above, nearest)
        up_to = np.where(nearest <= self.numbers, above, nearest)
        if zone:
            below[self.numbers == 0], up_to[self.numbers == 0] = -zone, np.nextafter(zone, precise(np.inf))
        numbers, places = np.unique(np.stack([below, up_to]), return_inverse=True)
        return numbers, places.reshape(2, -1)


@dataclass(frozen=True)
class Samples:
    """Samples of one input: the edges, and the cells or counts as JSON data for the page."""

    edges: np.ndarray
    data: dict[str, Any]

    @classmethod
    def of(
        cls, values: np.ndarray, edges: Edges, region: np.ndarray | None = None, below: np.ndarray | None = None
    ) -> Samples:
        r"""From samples (n, \*features); `below`: how many lie below each of the heights, where that is known."""
        shape = values.shape[1:] if region is None else region.shape
        if edges.one_by_one:
            data = _sorted_cells(placed(values, region), edges.numbers, edges.zone)
        else:
            counts = _counts(values, edges, below)
            if region is not None:
                counts = _around(counts, region, edges.numbers, len(values))
            data = _as_planes(counts, shape)
        return cls(edges.numbers, {"n": len(values), "size": math.prod(shape), **data})


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


def _counts(values: np.ndarray, edges: Edges, below: np.ndarray | None) -> np.ndarray:
    """Counts of each feature's samples below each edge, and at it: (2, edges, features)."""
    heights, places = edges.heights(values.dtype)
    found = counts_below(values, heights) if below is None else below
    counts = found.reshape(len(heights), -1).astype(as_words(len(values)))[places]
    counts[1] -= counts[0]
    return counts


def _around(counts: np.ndarray, region: np.ndarray, edges: np.ndarray, n: int) -> np.ndarray:
    """Counts of a context at their places in the map, and those of each feature of its object, whose scores are 0."""
    whole = np.empty((*counts.shape[:2], region.size), counts.dtype)
    whole[..., ~region.ravel()] = counts
    whole[..., region.ravel()] = n * np.stack([edges > 0, edges == 0])[..., None]
    return whole


def _as_planes(counts: np.ndarray, shape: tuple[int, ...]) -> dict[str, Any]:
    """Counts as planes of the shape of the map; those at the edges only if there are any."""
    below, at = counts.reshape(*counts.shape[:2], *shape)
    data = {"encoding": "counts", "below": packed_planes(below)}
    return {**data, "at": packed_planes(at)} if at.any() else data
