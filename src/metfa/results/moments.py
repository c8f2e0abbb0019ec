"""Median, mean, standard deviation and ends of samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from metfa import stats
from metfa.stats.blocks import each_block, each_map, sums_over

__all__ = ["ends_of", "ends_of_each", "first_signed", "largest_of", "mean_of", "median_of", "of_both_signs", "std_of"]

AT_A_TIME = 2**18  # scores at a time


def ends_of(values: np.ndarray) -> tuple[float, float]:
    r"""Lowest and highest of samples (n, \*shape), few scores at a time; NaN if any is."""
    low, high = math.inf, -math.inf
    for lowest, highest in each_block(lambda block: (block.min(), block.max()), values, AT_A_TIME):
        low, high = float(np.minimum(low, lowest)), float(np.maximum(high, highest))
    return low, high


def largest_of(maps: np.ndarray) -> np.ndarray:
    r"""Largest absolute score of each map (batch, \*features), (batch,) float64."""
    return np.abs(maps.reshape(len(maps), -1).astype(np.float64)).max(axis=1, initial=0.0)


def median_of(values: np.ndarray) -> np.ndarray:
    r"""Median of samples (n, \*shape)."""
    n = len(values)
    low, high = (n + 1) // 2, n // 2 + 1
    return stats.smoothed_median(
        values, ranks=stats.Ranks(n=n, low=low, high=high, first=low, last=high, confidence_level=0.0)
    )


def mean_of(values: np.ndarray) -> np.ndarray:
    r"""Mean of samples (n, \*shape), in their precision, at least float32."""
    scale = _scale(values)
    return (_mean(values, scale) / scale).astype(_at_least_float32(values.dtype))


def std_of(values: np.ndarray) -> np.ndarray:
    r"""Standard deviation (n - 1) of samples (n, \*shape), in their precision, at least float32."""
    if len(values) < 2:
        raise ValueError("`std` needs at least 2 samples, got 1")
    scale = _scale(values)
    mean = _mean(values, scale)

    def squares(total: np.ndarray, sample: np.ndarray, index: tuple[slice, ...]) -> None:
        total += ((sample if scale == 1 else sample * scale) - mean[index]) ** 2

    return (np.sqrt(sums_over(values, squares) / (len(values) - 1)) / scale).astype(_at_least_float32(values.dtype))


def _scale(values: np.ndarray) -> float:
    """A power of two, 1 for ordinary values, with which all sums and squares are floats; it rounds nothing."""
    if values.dtype != np.float64 or values.size == 0:
        return 1.0
    exponent = max(each_map(lambda one: math.frexp(max(float(one.max()), -float(one.min())))[1], values))
    return math.ldexp(1.0, max(-1000, min(1000, -exponent))) if abs(exponent) > 400 else 1.0


def _mean(values: np.ndarray, scale: float) -> np.ndarray:
    """Mean in float64, one sample at a time and relative to the first, so that a constant stays exact."""
    first = values[0].astype(np.float64) * scale

    def differences(total: np.ndarray, sample: np.ndarray, index: tuple[slice, ...]) -> None:
        total += (sample if scale == 1 else sample * scale) - first[index]

    return first + sums_over(values[1:], differences) / len(values)


def _at_least_float32(dtype: np.dtype) -> np.dtype:
    return np.promote_types(dtype, np.float32)


def of_both_signs(values: np.ndarray) -> tuple[int, float, float] | None:
    r"""First input whose values (n, batch, \*features) are signed, with its lowest and highest; None if there is none.

    They are if the lowest lies below 0 by more than 5 % of the highest; less counts as noise of scores with one sign.
    """
    return first_signed(ends_of_each(values))


def first_signed(ends: Iterable[tuple[float, float]]) -> tuple[int, float, float] | None:
    """`of_both_signs` of the ends of each input."""
    for row, (lowest, highest) in enumerate(ends):
        if lowest < 0 and -lowest > 0.05 * highest:
            return row, lowest, highest
    return None


def ends_of_each(values: np.ndarray) -> Iterator[tuple[float, float]]:
    r"""`ends_of` each input of values (n, batch, \*features), one after the other."""
    return (ends_of(values[:, row]) for row in range(values.shape[1] if values.size else 0))
