"""A threshold from the scores themselves: the exact natural break into two classes."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from metfa._arrays import to_host
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.stats._large_breaks import best_break
from metfa.stats.blocks import each_block
from metfa.stats.validation import as_real

__all__ = ["jenks", "jenks_sorted"]

SORTED_IN_MEMORY = 2**26  # bytes; more values are not sorted as a whole
BLOCK = 2**20  # values of them in memory at once
CHUNK = 2**16  # the scan's arrays stay in the processor's cache


def jenks(values: Any) -> float:
    """Threshold between low and high values: the natural break (Jenks) into two classes, exactly.

    The sorted values are cut in two where the within-class sum of squares is smallest, at the lowest such cut if
    several are equal. The threshold lies midway between the two values beside the cut.

    Parameters
    ----------
    values : array
        Finite real numbers, of any shape, dtype and library; all of them are used.

    Returns
    -------
    float
        The threshold, in float64, so that it lies strictly between two adjacent float32 numbers. NaN, with a warning,
        if all values are equal.

    Raises
    ------
    ValueError
        If there are no values, or if one is not finite.

    Warns
    -----
    DegenerateAttributionsWarning
        If all values are equal: no threshold separates them.

    Notes
    -----
    It takes one sort on the host and two scans of prefix sums: O(m log m) time, and memory for one sorted copy of the
    m values. More than 64 MiB of values are read in blocks instead, from a file if they lie in one, and the same break
    is found with a few tens of MiB (where two cuts are equal to the rounding of sums, either may be found). It is
    the optimal grouping of [1]_ with two classes; cartographers call it natural breaks [2]_.

    References
    ----------
    .. [1] W. D. Fisher, "On Grouping for Maximum Homogeneity", Journal of the American Statistical Association 53,
       1958, :doi:`10.1080/01621459.1958.10501479`.
    .. [2] G. F. Jenks, "The Data Model Concept in Statistical Mapping", International Yearbook of Cartography 7, 1967.

    Examples
    --------
    >>> from metfa import stats
    >>> stats.jenks([0.0, 0.1, 0.2, 0.8, 1.0])
    0.5
    """
    values = to_host(as_real(values, "values"))
    if values.nbytes > SORTED_IN_MEMORY and values.dtype.kind in "iuf" and _within_range(values):
        found = best_break(partial(each_block, values=values, width=BLOCK), values.size)
        return _equal(values) if found is None else _middle(*found)
    if values.dtype == np.float16:
        values = values.astype(np.float32)  # sorts faster, and exact
    return _natural_break(np.sort(values, axis=None), "values")


def _within_range(values: np.ndarray) -> bool:
    """Whether all values are finite, and neither so large nor so small that the squares of their sums are no floats."""
    largest = 0.0
    for ends in each_block(lambda block: (float(block.min()), float(block.max())), values, BLOCK):
        if not all(map(math.isfinite, ends)):
            return False
        largest = max(largest, *map(abs, ends))
    return abs(math.frexp(largest)[1]) <= 100


def jenks_sorted(sorted_values: np.ndarray) -> float:
    """`jenks` of values that are in ascending order already, such as a memory map. It makes no copy of them.

    Parameters
    ----------
    sorted_values : numpy.ndarray
        Finite real numbers in ascending order, shape ``(m,)``.

    Returns
    -------
    float
        The threshold, as `jenks` returns it; NaN, with the same warning, if all values are equal.

    Raises
    ------
    ValueError
        If the array is empty, not one-dimensional or not in ascending order, or if a value is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import stats
    >>> stats.jenks_sorted(np.array([-2, 0, 1]))
    -1.0
    """
    values = to_host(as_real(sorted_values, "sorted_values"))
    if values.ndim != 1:
        raise ValueError(f"`sorted_values` must have one axis, got shape {values.shape}; jenks() takes any shape")
    return _natural_break(values, "sorted_values")


def _natural_break(values: np.ndarray, name: str) -> float:
    """Midpoint of the two values beside the best cut of ascending `values`."""
    if values.size == 0:
        raise ValueError(f"`{name}` must hold at least one number, got shape {values.shape}")
    if not np.isfinite(values[[0, -1]]).all():  # sorting puts infinities and NaN at the ends
        starts = range(0, values.size, CHUNK)
        bad = sum(int(np.count_nonzero(~np.isfinite(values[start : start + CHUNK]))) for start in starts)
        raise ValueError(f"`{name}` must be finite, got {bad} values that are NaN or infinite")
    cut = _best_cut(values, name)
    if cut == 0:
        return _equal(values)
    return _middle(float(values[cut - 1]), float(values[cut]))


def _equal(values: np.ndarray) -> float:
    """NaN, with a warning."""
    warn(
        f"no threshold separates {values.size} equal values (all {values.flat[0]}): returning NaN, with which nothing "
        "is significant",
        DegenerateAttributionsWarning,
    )
    return math.nan


def _middle(low: float, high: float) -> float:
    middle = (low + high) / 2
    return middle if math.isfinite(middle) else low / 2 + high / 2


def _best_cut(values: np.ndarray, name: str) -> int:
    """Size of the lower class; 0 if all values are equal.

    With prefix sums s_i, total s and m values, the between-class sum of squares of the cut after i values is
    ``(m s_i - i s)**2 / (m i (m - i))``. It and the within-class sum add up to a constant, so the best cut maximises
    it. The middle value is subtracted, which keeps integers exact and rounding small. Very large or small values are
    scaled by a power of two, which rounds nothing and keeps squares within range.
    """
    m = values.size
    exponent = math.frexp(max(abs(float(values[0])), abs(float(values[-1]))))[1]
    scale = math.ldexp(1.0, max(-1000, min(1000, -exponent))) if abs(exponent) > 100 else 1.0
    centre = float(values[m // 2]) * scale

    def centred(chunk: np.ndarray) -> np.ndarray:
        numbers = chunk.astype(np.float64)
        numbers *= scale
        numbers -= centre
        return numbers

    total = sum(float(centred(values[start : start + CHUNK]).sum()) for start in range(0, m, CHUNK))
    carry, best, cut = 0.0, -1.0, 0
    for start in range(0, m - 1, CHUNK):
        chunk = values[start : start + CHUNK + 1]  # the last value only shows where the one before it ends
        if (chunk[1:] < chunk[:-1]).any():
            raise ValueError(f"`{name}` must be in ascending order, but falls after position {start}; write jenks(...)")
        sums = np.cumsum(centred(chunk[:-1]))
        sums += carry
        carry = float(sums[-1])
        sizes = np.arange(start + 1, start + 1 + sums.size, dtype=np.float64)
        between = (m * sums - sizes * total) ** 2 / (sizes * (m - sizes))
        between[chunk[1:] == chunk[:-1]] = -1.0  # a cut never separates equal values
        top = int(between.argmax())  # the first, if several are equal
        if between[top] > best:
            best, cut = float(between[top]), start + 1 + top
    return cut
