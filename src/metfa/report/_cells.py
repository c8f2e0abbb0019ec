"""Samples in few bytes, which still give exact counts about many thresholds.

The number line is cut at some edges. A sample is kept as the cell in which it lies: cell 2k + 1 is edge k itself, and
cell 2k lies between this edge and the one before. So at each edge, ties included, the samples strictly above it are
those in higher cells, and the samples strictly below it those in lower cells, exactly as `metfa.stats` counts them.
Between edges nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa.report._packing import packed

__all__ = ["Samples", "edges_of"]

MOST_EDGES = 127  # cells 0..254, which fit a byte
MOST_CELLS = 2**24  # so many samples are kept one by one; more are kept as counts at fewer edges
COUNTS = 2**25  # most numbers that are kept as counts
MOST_EDGES_OF_COUNTS, FEWEST_EDGES = 15, 3
BLOCK = 2**20  # values that are sorted into cells at once


@dataclass(frozen=True)
class Samples:
    """Samples of one input: the edges, and the cells as JSON data for the page."""

    edges: np.ndarray
    data: dict[str, Any]

    @classmethod
    def of(cls, values: np.ndarray, thresholds: Sequence[float], zone: float = 0.0) -> Samples:
        """From samples (n, features); the `thresholds` become edges, and without any there are no edges.

        Scores up to `zone` from 0 count as 0, as in a decision about the sign (see `Terms.unit`).
        """
        n, size = values.shape
        one_by_one = n * size <= MOST_CELLS
        most = MOST_EDGES if one_by_one else max(FEWEST_EDGES, min(MOST_EDGES_OF_COUNTS, COUNTS // (2 * size)))
        edges = edges_of(float(values.min()), float(values.max()), thresholds, most) if thresholds else np.empty(0)
        edges = edges[(edges == 0) | (np.abs(edges) > zone)]
        data = _sorted_cells(values, edges, zone) if one_by_one else _counts(values, edges, zone)
        return cls(edges, {"n": n, "size": size, **data})


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


def _counts(values: np.ndarray, edges: np.ndarray, zone: float) -> dict[str, Any]:
    """Counts of each feature's samples below each edge, and up to it if any lie at one; each less the edge before."""
    n, size = values.shape
    dtype = np.dtype(np.uint8 if n < 2**8 else "<u2" if n < 2**16 else "<u4")
    histogram = np.empty((2 * len(edges) + 1, size), dtype)
    columns = max(1, BLOCK // n)
    for start in range(0, size, columns):
        cells = _cells(values[:, start : start + columns], edges, zone)
        width = cells.shape[1]
        places = cells.astype(np.intp) * width + np.arange(width)
        counted = np.bincount(places.ravel(), minlength=len(histogram) * width)
        histogram[:, start : start + width] = counted.reshape(-1, width)
    between, at_edge = histogram[:-1:2], histogram[1::2]
    below = between.copy()
    below[1:] += at_edge[:-1]
    data: dict[str, Any] = {"encoding": "counts", "bits": 8 * dtype.itemsize, "below": packed(below)}
    if at_edge.any():
        data["upTo"] = packed((between + at_edge).astype(dtype))  # a sum is in the byte order of the machine
    return data
