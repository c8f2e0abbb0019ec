"""The exact natural break of more values than should be sorted in memory: a histogram, then the bins that may win."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

__all__ = ["best_break"]

BINS = 2**16
SAMPLED = 2**18  # values whose quantiles are the edges of the bins
GATHERED = 2**20  # values of possible winners in memory at once


Work = Callable[[np.ndarray], Any]


def best_break(each: Callable[[Work], Iterable[Any]], size: int) -> tuple[float, float] | None:
    """The two values beside the best cut of `size` values into two classes; None if all are equal.

    Parameters
    ----------
    each : callable
        Returns what a function makes of the values, block by block, in the same order at each call. They are finite,
        in one floating-point or integer dtype.
    size : int
        How many values there are.

    Notes
    -----
    With prefix sums s_i of m sorted values and their total t, the best cut i maximises
    ``(m s_i - i t)**2 / (i (m - i))``, as in `jenks`. Counts and sums of narrow bins give it exactly at every edge of a
    bin. For the cuts within a bin, from a to b with values from low to high,
    ``s_i >= max(s_a + (i - a) low, s_b - (b - i) high)`` bounds it from above. Only bins whose bound reaches the best
    edge can hold a better cut. Their values alone are gathered and sorted.
    """
    edges, centre = _edges(each, size)
    if edges is None:
        return None
    counts, sums, lows, highs = _histogram(each, edges, centre)
    some = counts > 0
    counts, sums, lows, highs = (of_bins[some] for of_bins in (counts, sums, lows, highs))
    ends, sums_to = counts.cumsum(), sums.cumsum()
    begins, sums_before = ends - counts, sums_to - sums
    total = float(sums_to[-1])
    m = float(size)

    def between(sizes: np.ndarray, prefix: np.ndarray) -> np.ndarray:
        inside = (sizes > 0) & (sizes < m)
        return np.where(inside, (m * prefix - sizes * total) ** 2 / np.where(inside, sizes * (m - sizes), 1), -1.0)

    at_edges = between(ends.astype(np.float64), sums_to)
    top = int(at_edges.argmax())
    best, found = float(at_edges[top]), (highs[top], lows[min(top + 1, len(lows) - 1)])

    low, high = lows - centre, highs - centre
    by_low = np.maximum(begins * total - m * sums_before, ends * total - m * (sums_before + counts * low))
    by_high = np.maximum(begins * total - m * (sums_to - counts * high), ends * total - m * sums_to)
    fewest = np.minimum(
        np.maximum(begins, 1) * (m - np.maximum(begins, 1)), np.minimum(ends, m - 1) * (m - np.minimum(ends, m - 1))
    )
    bounds = np.minimum(by_low, by_high) ** 2 / np.maximum(fewest, 1)
    left = np.flatnonzero((bounds >= best * (1 - 1e-9)) & (lows < highs))
    while left.size:
        group = left[: max(1, int(np.searchsorted(counts[left].cumsum(), GATHERED)))]
        left = left[len(group) :]
        for index, (values, repeats) in zip(group, _gathered(each, lows[group], highs[group]), strict=True):
            prefix = sums_before[index] + ((values - centre) * repeats).cumsum()[:-1]
            inner = between(begins[index] + repeats.cumsum()[:-1].astype(np.float64), prefix)
            top = int(inner.argmax())
            if inner[top] > best or (inner[top] == best and values[top] < found[0]):
                best, found = float(inner[top]), (values[top], values[top + 1])
        left = left[bounds[left] >= best * (1 - 1e-9)]
    return float(found[0]), float(found[1])


def _edges(each: Callable[[Work], Iterable[Any]], size: int) -> tuple[np.ndarray | None, float]:
    """Ascending edges of bins that hold about as many values each, None if all are equal; and a value in the middle."""
    step = max(1, size // SAMPLED)

    def sample(block: np.ndarray) -> tuple[np.ndarray, float, float]:
        return block[::step].astype(np.float64), float(block.min()), float(block.max())

    some, lowest, highest = zip(*each(sample), strict=True)
    sampled, lowest, highest = np.sort(np.concatenate(some)), min(lowest), max(highest)
    if lowest == highest:
        return None, lowest
    quantiles = sampled[np.linspace(0, sampled.size - 1, min(BINS, sampled.size)).astype(np.int64)]
    return np.unique(np.concatenate([[lowest], quantiles])), float(sampled[sampled.size // 2])


def _histogram(
    each: Callable[[Work], Iterable[Any]], edges: np.ndarray, centre: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Count, centred sum, smallest and largest value of each bin, from its edge up to, but without, the next."""

    def binned(block: np.ndarray) -> tuple[np.ndarray, ...]:
        ordered = np.sort(block)
        starts = np.searchsorted(ordered, edges.astype(ordered.dtype) if ordered.dtype.kind == "f" else edges)
        stops = np.append(starts[1:], ordered.size)
        some = np.flatnonzero(stops > starts)
        first, last = starts[some], stops[some]
        sums = np.add.reduceat(ordered.astype(np.float64) - centre, first)
        return some, last - first, sums, ordered[first], ordered[last - 1]

    counts, sums = np.zeros(len(edges), np.int64), np.zeros(len(edges))
    lows, highs = np.full(len(edges), np.inf), np.full(len(edges), -np.inf)
    for some, *found in each(binned):
        for into, add, more in zip(
            (counts, sums, lows, highs), (np.add, np.add, np.minimum, np.maximum), found, strict=True
        ):
            into[some] = add(into[some], more)
    return counts, sums, lows, highs


def _gathered(
    each: Callable[[Work], Iterable[Any]], lows: np.ndarray, highs: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Distinct values of each bin, ascending, and how often each occurs."""

    def distinct(block: np.ndarray) -> list[tuple[int, tuple[np.ndarray, np.ndarray]]]:
        inside = np.sort(block[(block >= lows.min()) & (block <= highs.max())])
        starts, stops = np.searchsorted(inside, lows), np.searchsorted(inside, highs, side="right")
        return [
            (index, np.unique(inside[starts[index] : stops[index]], return_counts=True))
            for index in np.flatnonzero(stops > starts).tolist()
        ]

    found: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in lows]
    for of_block in each(distinct):
        for index, pair in of_block:
            found[index].append(pair)
    merged = []
    for parts in found:
        values, places = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
        repeats = np.bincount(places, np.concatenate([part[1] for part in parts])).astype(np.int64)
        merged.append((values.astype(np.float64), repeats))
    return merged
