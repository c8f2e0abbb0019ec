"""Intervals and smoothed values of the same samples, which are sorted once for both."""

from __future__ import annotations

from functools import partial
from typing import Any

from metfa.stats._intervals import ConfidenceInterval, average_at, ends_at, ranks_for
from metfa.stats._order import ordered_copy
from metfa.stats._ranks import Ranks
from metfa.stats.blocks import reduce_rows
from metfa.stats.validation import as_rows, refuse_nan

__all__ = ["interval_and_smoothed"]


def interval_and_smoothed(samples: Any, ranks: Ranks, averaged: Ranks) -> tuple[ConfidenceInterval, Any]:
    """`median_interval` with `ranks` and `smoothed_median` with the ranks `averaged`, of samples sorted once.

    Parameters
    ----------
    samples : array, ``(n, *features)``
        Independent samples; real numbers of any dtype.
    ranks, averaged : Ranks
        Order statistics for n samples.

    Returns
    -------
    (ConfidenceInterval, array)
        What these functions return.

    Raises
    ------
    ValueError
        As they do.
    """
    rows, n = as_rows(samples, 0)
    ranks, averaged = (ranks_for(n, None, given) for given in (ranks, averaged))
    low, high, average, missing = reduce_rows(partial(_both, ranks=ranks, averaged=averaged), rows)
    refuse_nan(missing, "samples")
    return ConfidenceInterval(low, high, ranks.confidence_level), average


def _both(rows: Any, *, ranks: Ranks, averaged: Ranks) -> tuple[Any, Any, Any, Any]:
    ordered, missing = ordered_copy(rows)
    return *ends_at(ordered, ranks, rows.dtype), average_at(ordered, averaged), missing
