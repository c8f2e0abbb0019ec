"""The sign test of a median, for many features at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._arrays import namespace
from metfa.stats.counts import count_sides, looked_up
from metfa.stats.sign_null import MOST_SAMPLES, upper_tail_table
from metfa.stats.validation import as_alternative, as_rows

__all__ = ["SignTestResult", "result_of", "sign_test"]


@dataclass(frozen=True, eq=False)
class SignTestResult:
    """Result of `sign_test`; every array has the shape of one sample and the library of the samples.

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
        """+1 where `above` is the larger count and so has the smaller tail, -1 where `below` is, 0 where both agree."""
        xp = namespace(self.above)
        return xp.astype(self.above > self.below, xp.int8) - xp.astype(self.below > self.above, xp.int8)


def sign_test(samples: Any, threshold: Any, *, alternative: str = "two-sided", axis: int = 0) -> SignTestResult:
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
    SignTestResult
        Counts and p-values, in the library of `samples` (float64, or float32 where that is the widest there is).

    Raises
    ------
    ValueError
        If `samples` holds NaN or no sample, or if `threshold` does not broadcast.

    Notes
    -----
    The test is exact, and valid for any law, with ties or not, if the samples of a feature are independent. Features
    may depend on each other in any way. Samples are compared with h in float64, never with a rounded h. This needs no
    wider copy of the samples: x > h if and only if x exceeds the largest number of its own dtype that is at most h.
    (JAX treats subnormal numbers as zero.) It is SciPy's ``quantile_test`` at p = 1/2 [1]_ and the one-sided test of
    the paper [2]_. NumPy samples may lie in a file: they are read in blocks.

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
    >>> result = stats.sign_test(samples, 0)
    >>> result.above, result.below
    (array([9, 0, 4]), array([1, 9, 4]))
    >>> result.pvalue
    array([0.02148438, 0.02148438, 1.        ])
    >>> result.sign
    array([ 1, -1,  0], dtype=int8)
    """
    alternative = as_alternative(alternative)
    rows, n = as_rows(samples, axis)
    above, below = count_sides(rows, n, threshold)
    return result_of(above, below, n, alternative)


def result_of(above: Any, below: Any, n: int, alternative: str) -> SignTestResult:
    """`sign_test` of counts."""
    if n > MOST_SAMPLES:
        raise ValueError(
            f"`samples` must hold at most {MOST_SAMPLES:,} samples, beyond which exact tails take minutes, got {n:,}"
        )
    # Tails fall as counts grow: the smaller tail is that of the larger count.
    counts = {"greater": above, "less": below, "two-sided": namespace(above).maximum(above, below)}[alternative]
    tails = upper_tail_table(n)
    pvalue = looked_up(np.minimum(1, 2 * tails) if alternative == "two-sided" else tails, counts)
    return SignTestResult(n, above, below, pvalue, alternative)
