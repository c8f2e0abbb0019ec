"""Intervals, smoothed values and counts of the same samples, which are sorted once for all of them."""

from __future__ import annotations

from functools import partial

import numpy as np

from metfa.stats._intervals import ConfidenceInterval, average_at, ends_at, ranks_for
from metfa.stats._order import ordered_copy
from metfa.stats._ranks import Ranks
from metfa.stats.blocks import reduce_rows
from metfa.stats.validation import as_rows, refuse_nan

__all__ = ["counts_below", "interval_and_smoothed"]


def interval_and_smoothed(
    samples: np.ndarray, ranks: Ranks, averaged: Ranks, heights: np.ndarray | None = None
) -> tuple[ConfidenceInterval, np.ndarray, np.ndarray | None]:
    r"""`median_interval` with `ranks`, `smoothed_median` with the ranks `averaged`, and `counts_below` the `heights`.

    Parameters
    ----------
    samples : ndarray, (n, \*features)
        Independent samples; real numbers of any dtype.
    ranks, averaged : Ranks
        Order statistics for n samples.
    heights : ndarray, (k,), optional
        Numbers of a dtype that is exactly compared with the samples.

    Returns
    -------
    (ConfidenceInterval, ndarray, ndarray or None)
        What these functions return; the last is None without `heights`.

    Raises
    ------
    ValueError
        As they do.
    """
    rows, n = as_rows(samples, 0)
    ranks, averaged = (ranks_for(n, None, given) for given in (ranks, averaged))
    work = partial(_all, ranks=ranks, averaged=averaged, heights=heights)
    low, high, average, missing, *counts = reduce_rows(work, rows)
    refuse_nan(missing, "samples")
    below = None if heights is None else _stacked(counts, average.shape)
    return ConfidenceInterval(low, high, ranks.confidence_level), average, below


def counts_below(samples: np.ndarray, heights: np.ndarray) -> np.ndarray:
    r"""How many samples (n, \*features) lie below each of the heights (k,), integers (k, \*features)."""
    rows, _ = as_rows(samples, 0)
    missing, *below = reduce_rows(partial(_counts, heights=heights), rows)
    refuse_nan(missing, "samples")
    return _stacked(below, missing.shape)


def _stacked(below: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    return np.stack(below) if below else np.zeros((0, *shape), np.int8)


def _all(rows: np.ndarray, *, ranks: Ranks, averaged: Ranks, heights: np.ndarray | None) -> tuple[np.ndarray, ...]:
    ordered, missing = ordered_copy(rows)
    below = () if heights is None else _below(ordered, heights)
    return *ends_at(ordered, ranks, rows.dtype), average_at(ordered, averaged), missing, *below


def _counts(rows: np.ndarray, *, heights: np.ndarray) -> tuple[np.ndarray, ...]:
    ordered, missing = ordered_copy(rows)
    return missing, *_below(ordered, heights)


def _below(ordered: np.ndarray, heights: np.ndarray) -> np.ndarray:
    r"""How many numbers of each row in ascending order lie below each height, (k, \*features): all halved at once."""
    n = ordered.shape[-1]
    flat = ordered.ravel()
    before = np.arange(-1, flat.size - 1, n)  # the number before each row
    found = np.zeros((len(heights), len(before)), np.intp)
    step = 1 << (n.bit_length() - 1)
    while step:
        more = found + step
        is_below = flat.take(more + before, mode="clip") < heights[:, None]
        is_below &= more <= n
        np.copyto(found, more, where=is_below)
        step >>= 1
    return found.astype(np.min_scalar_type(-n - 1)).reshape(-1, *ordered.shape[:-1])  # -128 fits a byte, 128 does not
