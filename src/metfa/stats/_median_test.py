"""The sign test of a median, for many features at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._arrays import from_host, namespace, real_dtype, to_host
from metfa.stats._blocks import comparable, reduce_rows
from metfa.stats._sign_null import MOST_SAMPLES, upper_tail_table
from metfa.stats._validation import as_alternative, as_real, as_rows, refuse_nan

__all__ = ["MedianTestResult", "median_test"]


@dataclass(frozen=True, eq=False)
class MedianTestResult:
    """Result of `median_test`; every array has the shape of one sample and the library of the samples.

    Attributes
    ----------
    n : int
        Number of samples.
    above, below : array of int
        Number of samples strictly above and strictly below the threshold.
    pvalue : array of float
        The p-value of each feature.
    alternative : {"two-sided", "greater", "less"}
        The alternative hypothesis that the p-values are for.
    sign : array of int8
        The side that the evidence speaks for, significant or not: +1 above the threshold, -1 below, 0 neither.
    """

    n: int
    above: Any
    below: Any
    pvalue: Any
    alternative: str = "two-sided"

    @property
    def sign(self) -> Any:
        """+1 where the tail of `above` is the smaller one, -1 where that of `below` is, 0 where they are equal."""
        xp = namespace(self.above)
        return xp.astype(self.above > self.below, xp.int8) - xp.astype(self.below > self.above, xp.int8)


def median_test(samples: Any, threshold: Any, *, alternative: str = "two-sided", axis: int = 0) -> MedianTestResult:
    """Sign test: is the median of each feature above or below a threshold?

    Parameters
    ----------
    samples : array
        Independent samples, ``(n, *features)`` for ``axis=0``; floating point of any width, integers or booleans.
    threshold : float or array
        The value h to compare with: one number, or an array that broadcasts to the shape of one sample. NaN speaks
        for neither side: counts 0, p-value 1.
    alternative : {"two-sided", "greater", "less"}
        With V the median of a feature's law,

        - "greater": H0: V <= h, H1: V > h; the p-value is ``P(B >= above)``;
        - "less": H0: V >= h, H1: V < h; the p-value is ``P(B >= below)``;
        - "two-sided": H0: V = h, H1: V != h; the p-value is twice the smaller of these two, at most 1,

        where B ~ Binomial(n, 1/2) and samples equal to h count for neither side.
    axis : int, default: 0
        The axis of `samples` that runs over the samples.

    Returns
    -------
    MedianTestResult
        Counts and p-values, in the library of `samples` (float64, or float32 where that is the widest there is).

    Raises
    ------
    ValueError
        If `samples` holds NaN or no sample, or if `threshold` does not broadcast.

    Notes
    -----
    The test is exact, valid for any law, with ties or not, if the samples of a feature are independent; features may
    depend on each other in any way. Samples are compared with h as the float64 it is, never with a rounded h, and
    without a wider copy of the samples: x > h if and only if x exceeds the largest number of its own dtype that is
    at most h. (JAX treats subnormal numbers as zero.) It is SciPy's ``quantile_test`` at p = 1/2 [1]_ and the
    one-sided test of the paper [2]_. NumPy samples may lie on file: they are read in blocks.

    References
    ----------
    .. [1] W. J. Conover, "Practical Nonparametric Statistics", 3rd edition, Wiley, 1999, section 3.2.
    .. [2] Y. Gan et al., "'Is your explanation stable?': A Robustness Evaluation Framework for Feature Attribution",
       CCS 2022, :doi:`10.1145/3548606.3559392`.

    Examples
    --------
    Ten samples of three features: one mostly above 0, one never above it, one undecided.

    >>> import numpy as np
    >>> from metfa import stats
    >>> samples = np.array([[0.1, -1, 1], [0.2, -2, -1]] * 4 + [[0.5, -1, 0], [-0.1, 0, 0]])
    >>> result = stats.median_test(samples, 0)
    >>> result.above, result.below
    (array([9, 0, 4]), array([1, 9, 4]))
    >>> result.pvalue
    array([0.02148438, 0.02148438, 1.        ])
    >>> result.sign
    array([ 1, -1,  0], dtype=int8)
    """
    alternative = as_alternative(alternative)
    rows, n = as_rows(samples, axis)
    if n > MOST_SAMPLES:
        raise ValueError(
            f"`samples` must be at most {MOST_SAMPLES:,}, beyond which exact tails take minutes, got {n:,}"
        )
    xp = namespace(rows)
    h = _threshold_on_host(threshold, rows.shape[:-1])

    probe = comparable(rows[..., :0])
    lower, upper, all_above, all_below = _neighbours(h, to_host(probe).dtype)
    lower, upper = (xp.broadcast_to(from_host(bound, probe), rows.shape[:-1]) for bound in (lower, upper))
    above, below, missing = reduce_rows(_count, rows, lower, upper)
    refuse_nan(missing, "samples")
    above, below = (
        counts + from_host(n * everything, rows, counts.dtype) if everything.any() else counts
        for counts, everything in ((above, all_above), (below, all_below))
    )

    # Tails fall as counts grow: the smaller tail is that of the larger count.
    counts = {"greater": above, "less": below, "two-sided": xp.maximum(above, below)}[alternative]
    tails = upper_tail_table(n)
    table = from_host(np.minimum(1, 2 * tails) if alternative == "two-sided" else tails, rows, real_dtype(rows))
    pvalue = xp.reshape(xp.take(table, xp.reshape(counts, (-1,)), axis=0), counts.shape)
    return MedianTestResult(n, above, below, pvalue[()] if isinstance(pvalue, np.ndarray) else pvalue, alternative)


def _threshold_on_host(threshold: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The threshold in float64, checked to broadcast to the features."""
    h = np.asarray(to_host(as_real(threshold, "threshold")), dtype=np.float64)
    try:
        np.broadcast_to(h, shape)
    except ValueError:
        raise ValueError(
            f"`threshold` must broadcast to the shape of one sample, {tuple(shape)}, got shape {h.shape}"
        ) from None
    return h


def _neighbours(h: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Largest number of `dtype` that is at most h, smallest that is at least h; and where all numbers lie above, below.

    A floating-point dtype reaches from -inf to inf, so the last two are for thresholds outside an integer's range.
    """
    if np.issubdtype(dtype, np.floating):
        with np.errstate(over="ignore"):
            nearest = h.astype(dtype)
        lower = np.where(nearest > h, np.nextafter(nearest, dtype.type(-np.inf)), nearest)
        upper = np.where(nearest < h, np.nextafter(nearest, dtype.type(np.inf)), nearest)
        return lower, upper, np.zeros_like(h, bool), np.zeros_like(h, bool)
    info = np.iinfo(dtype)
    floor, ceil, end = np.floor(h), np.ceil(h), 2.0 ** (info.bits - (info.min < 0))

    def cast(bound: np.ndarray, otherwise: int) -> np.ndarray:  # `otherwise` must make the comparison false
        fits = (bound >= info.min) & (bound < end)  # float(info.max) would round up to `end`
        return np.where(fits, np.where(fits, bound, 0).astype(dtype), dtype.type(otherwise))

    return cast(floor, info.max), cast(ceil, info.min), floor < info.min, ceil >= end


def _count(rows: Any, lower: Any, upper: Any) -> tuple[Any, Any, Any]:
    """Numbers of samples above, below, and NaN."""
    xp = namespace(rows)
    rows = comparable(rows)
    hits = (rows > lower[..., None], rows < upper[..., None], rows != rows)  # only NaN differs from itself
    above, below, missing = (xp.count_nonzero(hit, axis=-1) for hit in hits)
    return above, below, missing
