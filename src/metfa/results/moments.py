"""Median, mean and standard deviation of samples."""

from __future__ import annotations

import math

import numpy as np

from metfa import stats
from metfa._base.mapped import unload

__all__ = ["ends_of", "mean_of", "median_of", "std_of"]


def ends_of(values: np.ndarray) -> tuple[float, float]:
    r"""Lowest and highest of samples (n, \*shape), one sample at a time; NaN if any is."""
    low, high = math.inf, -math.inf
    for sample in values:
        low, high = float(np.minimum(low, sample.min())), float(np.maximum(high, sample.max()))
        unload(values)
    return low, high


def median_of(values: np.ndarray) -> np.ndarray:
    r"""Median of samples (n, \*shape)."""
    n = len(values)
    low, high = (n + 1) // 2, n // 2 + 1
    return stats.smoothed_median(
        values, ranks=stats.Ranks(n=n, low=low, high=high, first=low, last=high, confidence_level=0.0)
    )


def mean_of(values: np.ndarray) -> np.ndarray:
    r"""Mean of samples (n, \*shape), in their precision, at least float32."""
    return _mean(values).astype(_at_least_float32(values.dtype))


def std_of(values: np.ndarray) -> np.ndarray:
    r"""Standard deviation (n - 1) of samples (n, \*shape), in their precision, at least float32."""
    if len(values) < 2:
        raise ValueError("`std` needs at least 2 samples, got 1")
    mean = _mean(values)
    squares = np.zeros_like(mean)
    for sample in values:
        squares += (sample - mean) ** 2
        unload(values)
    return np.sqrt(squares / (len(values) - 1)).astype(_at_least_float32(values.dtype))


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean in float64, one sample at a time and relative to the first, so that a constant stays exact."""
    first = values[0].astype(np.float64)
    total = np.zeros_like(first)
    for sample in values[1:]:
        total += sample - first
        unload(values)
    return first + total / len(values)


def _at_least_float32(dtype: np.dtype) -> np.dtype:
    return np.promote_types(dtype, np.float32)
