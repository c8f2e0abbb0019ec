"""Intervals for a median or a mean, and the smoothed value: the mean of the order statistics inside the interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np

from metfa._arrays import from_host, namespace, to_host, widen
from metfa.stats._order import middle_of, ordered_copy
from metfa.stats._ranks import Ranks, median_ranks
from metfa.stats.blocks import reduce_rows
from metfa.stats.validation import as_level, as_rows, refuse_nan

__all__ = [
    "ConfidenceInterval",
    "average_at",
    "ends_at",
    "mean_interval",
    "median_interval",
    "ranks_for",
    "smoothed_median",
]


@dataclass(frozen=True, eq=False)
class ConfidenceInterval:
    """An interval for each feature.

    Attributes
    ----------
    low, high : array
        The two ends, each of the shape of one sample.
    confidence_level : float
        The level that the interval reaches, which may exceed the level asked for.
    """

    low: Any
    high: Any
    confidence_level: float


def median_interval(
    samples: Any, confidence_level: float | None = None, *, ranks: Ranks | None = None, axis: int = 0
) -> ConfidenceInterval:
    """Exact interval for the median of each feature: two order statistics.

    Parameters
    ----------
    samples : array
        Independent samples, ``(n, *features)`` for ``axis=0``; real numbers of any dtype.
    confidence_level : float, default: 0.95
        Least probability that the interval covers the median.
    ranks : Ranks, optional
        Order statistics to take instead of ``median_ranks(n, confidence_level)``. They have a level of their own, so
        give only one of the two.
    axis : int, default: 0
        The axis of `samples` that runs over the samples.

    Returns
    -------
    ConfidenceInterval
        ``low`` and ``high`` in the dtype and library of `samples`; ``confidence_level`` is the exact one.

    Raises
    ------
    ValueError
        If there are too few samples for the level, if `samples` holds NaN, if `ranks` is for another number of samples,
        or if a level is given beside `ranks`.

    Notes
    -----
    The interval holds the thresholds that the two-sided `sign_test` does not reject at ``1 - confidence_level``.
    Coverage is exact for continuous laws and at least as high for any other [1]_. Infinite samples are ordered like
    any others. NumPy samples may lie in a file: they are read in blocks. Other libraries sort one copy.

    References
    ----------
    .. [1] H. A. David and H. N. Nagaraja, "Order Statistics", 3rd edition, Wiley, 2003, section 7.1.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import stats
    >>> interval = stats.median_interval(np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.6, 5.0, 3.5, 8.0, 7.0]))
    >>> float(interval.low), float(interval.high), interval.confidence_level
    (1.5, 8.0, 0.978515625)
    """
    rows, n = as_rows(samples, axis)
    ranks = ranks_for(n, confidence_level, ranks)
    low, high, missing = reduce_rows(partial(_ends, ranks=ranks), rows)
    refuse_nan(missing, "samples")
    return ConfidenceInterval(low, high, ranks.confidence_level)


def smoothed_median(
    samples: Any, confidence_level: float | None = None, *, ranks: Ranks | None = None, axis: int = 0
) -> Any:
    """Smoothed value of each feature: the mean of the order statistics inside the interval for the median.

    Parameters
    ----------
    samples : array
        Independent samples, ``(n, *features)`` for ``axis=0``; real numbers of any dtype.
    confidence_level : float, default: 0.95
        Level of the interval.
    ranks : Ranks, optional
        Order statistics to average instead of ``median_ranks(n, confidence_level)``; give only one of the two.
    axis : int, default: 0
        The axis of `samples` that runs over the samples.

    Returns
    -------
    array
        One value per feature. Half precision is averaged and returned in float32, integers in the widest real dtype.

    Raises
    ------
    ValueError
        If there are too few samples for the level, if `samples` holds NaN, if `ranks` is for another number of samples,
        or if a level is given beside `ranks`.

    Notes
    -----
    The average of [1]_, with symmetric ranks: a trimmed mean, unbiased for symmetric laws. For torch it is
    differentiable in `samples`. Infinite samples are ordered like any others; the average is finite unless they reach
    the averaged ranks.

    References
    ----------
    .. [1] Y. Gan et al., "'Is your explanation stable?': A Robustness Evaluation Framework for Feature Attribution",
       CCS 2022, :doi:`10.1145/3548606.3559392`.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import stats
    >>> float(stats.smoothed_median(np.array([3.0, 1.0, 4.0, 1.5, 99.0, 2.5])))
    18.5
    >>> float(stats.smoothed_median(np.array([3.0, 1.0, 4.0, 1.5, 99.0, 2.5]), 0.5))
    2.75
    """
    rows, n = as_rows(samples, axis)
    ranks = ranks_for(n, confidence_level, ranks)
    average, missing = reduce_rows(partial(_average, ranks=ranks), rows)
    refuse_nan(missing, "samples")
    return average


def mean_interval(samples: Any, confidence_level: float = 0.95, *, axis: int = 0) -> ConfidenceInterval:
    """Asymptotic interval for the mean of each feature, which is SmoothGrad's value.

    Parameters
    ----------
    samples : array
        Independent samples, ``(n, *features)`` for ``axis=0``, at least two; real numbers of any dtype, all finite.
    confidence_level : float, default: 0.95
        Nominal probability that the interval covers the mean.
    axis : int, default: 0
        The axis of `samples` that runs over the samples.

    Returns
    -------
    ConfidenceInterval
        Mean plus and minus ``z * s / sqrt(n)``, with s the sample standard deviation (divisor n - 1) and z the normal
        quantile; half precision in float32, integers in the widest real dtype. ``confidence_level`` is the nominal
        level.

    Raises
    ------
    ValueError
        If there are fewer than two samples, or if one is not finite.

    Notes
    -----
    The paper extends SmoothGrad by the jackknife and the central limit theorem ([1]_, Discussion). For a mean the
    jackknife standard error *is* ``s / sqrt(n)``, so nothing needs resampling. The level is only reached as n grows:
    for small n and for skewed laws the coverage is lower, while `median_interval` keeps its level at every n.

    References
    ----------
    .. [1] Y. Gan et al., "'Is your explanation stable?': A Robustness Evaluation Framework for Feature Attribution",
       CCS 2022, :doi:`10.1145/3548606.3559392`.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import stats
    >>> interval = stats.mean_interval(np.array([1.0, 2.0, 3.0, 4.0]))
    >>> round(float(interval.low), 3), round(float(interval.high), 3)
    (1.235, 3.765)
    """
    level = as_level(confidence_level, "confidence_level")
    rows, n = as_rows(samples, axis)
    if n < 2:
        raise ValueError(f"`samples` must hold at least 2 samples for a standard deviation, got {n}")
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation, bad = reduce_rows(_moments, rows)
    refuse_nan(bad, "samples", "NaN and infinity")
    reach = deviation * (NormalDist().inv_cdf((1 + level) / 2) / n**0.5)
    return ConfidenceInterval(mean - reach, mean + reach, level)


def ranks_for(n: int, confidence_level: float | None, ranks: Ranks | None) -> Ranks:
    """The given ranks, which must be for `n` samples, or those of a level."""
    if ranks is None:
        return median_ranks(n, 0.95 if confidence_level is None else confidence_level)
    if confidence_level is not None:
        level = as_level(confidence_level, "confidence_level")
        raise ValueError(
            f"`confidence_level`={level!r} would not be used beside `ranks`, which have a level of their own: give "
            "only one of the two"
        )
    if not isinstance(ranks, Ranks):
        raise TypeError(f"`ranks` must be a Ranks, as median_ranks({n}) returns, got {type(ranks).__name__}")
    if ranks.n != n:
        raise ValueError(f"`ranks` are for {ranks.n} samples, got {n} samples; write median_ranks({n}) or the like")
    return ranks


def _ends(rows: Any, *, ranks: Ranks) -> tuple[Any, Any, Any]:
    ordered, missing = ordered_copy(rows)
    return *ends_at(ordered, ranks, rows.dtype), missing


def ends_at(ordered: Any, ranks: Ranks, dtype: Any) -> tuple[Any, Any]:
    """Lower and upper end of each interval, of rows in ascending order."""
    xp = namespace(ordered)
    which = from_host(np.array([ranks.low - 1, ranks.high - 1]), ordered, xp.int32)
    ends = xp.astype(xp.take(ordered, which, axis=-1), dtype)  # a copy: the sorted samples can be freed
    return ends[..., 0], ends[..., 1]


def _average(rows: Any, *, ranks: Ranks) -> tuple[Any, Any]:
    if isinstance(rows, np.ndarray) and ranks.last - ranks.first <= 1:
        middle, missing = middle_of(rows, ranks)
        return _mean_about(widen(middle), 0), missing
    ordered, missing = ordered_copy(rows)
    return average_at(ordered, ranks), missing


def average_at(ordered: Any, ranks: Ranks) -> Any:
    """Smoothed value of each row in ascending order."""
    return _mean_about(widen(ordered[..., ranks.first - 1 : ranks.last]), (ranks.last - ranks.first) // 2)


def _moments(rows: Any) -> tuple[Any, Any, Any]:
    xp = namespace(rows)
    rows = widen(rows)
    bad = xp.count_nonzero(~xp.isfinite(rows), axis=-1)
    largest = float(to_host(xp.max(xp.abs(rows)))) if math.prod(rows.shape) else 0.0
    exponent = math.frexp(largest)[1] if math.isfinite(largest) else 0
    # With a power of two, which rounds nothing, the squares are within range.
    scale = math.ldexp(1.0, -exponent) if abs(exponent) > math.frexp(float(xp.finfo(rows.dtype).max))[1] // 3 else 1.0
    deviation = xp.std(
        (rows - rows[..., :1]) if scale == 1 else rows * scale - rows[..., :1] * scale, axis=-1, correction=1
    )
    return _mean_about(rows, 0), deviation / scale, bad


def _mean_about(rows: Any, origin: int) -> Any:
    """Mean of each row, relative to one of its values: this rounds less, and the mean of a constant is exact."""

    def mean(rows: Any) -> Any:
        base = rows[..., origin : origin + 1]
        return base[..., 0] + xp.mean(rows - base, axis=-1)

    xp = namespace(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        found = mean(rows)
        if bool(xp.all(xp.isfinite(found))):
            return found
        smaller = 2.0 ** -(rows.shape[-1].bit_length() + 1)  # a power of two: it rounds nothing, and sums are in range
        return mean(rows * smaller) / smaller
