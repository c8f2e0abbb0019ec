"""Threshold rules that noise hardly moves: the natural break of one number a feature, and a multiple of the mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._arrays import to_host
from metfa._base.validation import check_number
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.stats._intervals import smoothed_median
from metfa.stats._ranks import Ranks
from metfa.stats._thresholds import jenks
from metfa.stats.blocks import reduce_rows, value_blocks
from metfa.stats.validation import as_real, as_rows

__all__ = ["TimesMean", "jenks_of_means", "jenks_of_medians"]

BLOCK = 2**20  # values in memory at once


def jenks_of_medians(values: Any) -> float:
    r"""Threshold between low and high features: the natural break of the medians of each feature's samples.

    `jenks` cuts *all* scores of an input, and their spread is that of the features and of the noise together. So its
    threshold climbs with the noise, although the features differ as before. This rule cuts one number for each feature
    instead, and is nearer to the question that the test asks.

    Parameters
    ----------
    values : array, (n, \*features)
        Samples of one input, finite real numbers of any dtype and library.

    Returns
    -------
    float
        The threshold, as `jenks` returns it for the medians; NaN, with a warning, if all medians are equal.

    Raises
    ------
    ValueError
        If there are no values, or a median is not finite.

    Warns
    -----
    DegenerateAttributionsWarning
        If all medians are equal: no threshold separates them.

    Notes
    -----
    Whatever h is, the error of a mark stays at its level: see the guide on choosing N. With an even number of samples
    the median is the mean of the two in the middle. Samples in a file are read in blocks; the medians are in memory.
    How it compares with the other rules where the truth is known: see "How often are the marks right?" in the
    documentation.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import stats
    >>> samples = np.array([[0.0, 0.1, 0.9], [0.1, 0.2, 1.0], [0.2, 3.0, 1.1]])
    >>> round(stats.jenks_of_medians(samples), 2), round(stats.jenks(samples), 2)
    (0.6, 2.05)
    """
    rows, n = as_rows(as_real(values, "values"), 0)
    low, high = (n + 1) // 2, n // 2 + 1
    middle = Ranks(n=n, low=low, high=high, first=low, last=high, confidence_level=0.0)
    return jenks(smoothed_median(rows, ranks=middle, axis=-1))


def jenks_of_means(values: Any) -> float:
    r"""Threshold between low and high features: the natural break of the means of each feature's samples.

    As `jenks_of_medians`, with means; one wild sample moves it.

    Parameters
    ----------
    values : array, (n, \*features)
        Samples of one input, finite real numbers of any dtype and library.

    Returns
    -------
    float
        The threshold, as `jenks` returns it for the means; NaN, with a warning, if all means are equal.

    Raises
    ------
    ValueError
        If there are no values, or a mean is not finite.

    Warns
    -----
    DegenerateAttributionsWarning
        If all means are equal: no threshold separates them.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import stats
    >>> stats.jenks_of_means(np.array([[0.0, 1.0, 8.0], [2.0, 1.0, 10.0]]))
    5.0
    """
    rows, _ = as_rows(as_real(values, "values"), 0)
    return jenks(reduce_rows(lambda part: (part.mean(axis=-1, dtype=np.float64),), to_host(rows))[0])


@dataclass(frozen=True)
class TimesMean:
    r"""A rule for thresholds: `factor` times the mean of all scores of an input.

    With the factor 2 "important" reads: the median is more than twice the mean score. The rule means the same for every
    scale of the scores, and nothing is above it where all scores are about equal.

    Parameters
    ----------
    factor : float
        Above 0.

    Raises
    ------
    TypeError, ValueError
        If `factor` is no such number. When called: if there are no values, or one is not finite.

    Warns
    -----
    DegenerateAttributionsWarning
        When called, if the mean is not above 0: scores that say *how much* have none such, and the means of signed
        scores cancel. The threshold is then NaN.

    Examples
    --------
    >>> from metfa import stats
    >>> stats.TimesMean(2)([[0.0, 1.0, 2.0], [0.0, 1.0, 5.0]])
    3.0
    """

    factor: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", check_number(self.factor, "factor", above=0))

    def __call__(self, values: Any) -> float:
        r"""The threshold of samples (n, \*features) of one input, or of any other scores."""
        values = to_host(as_real(values, "values"))
        if values.size == 0:
            raise ValueError(f"`values` must hold at least one number, got shape {values.shape}")
        mean = math.fsum(float(block.sum(dtype=np.float64) / values.size) for block in value_blocks(values, BLOCK))
        if not math.isfinite(mean):
            raise ValueError(f"`values` must be finite, got a mean of {mean}")
        if mean <= 0:
            warn(
                f"{self.factor:g} times the mean is no threshold where the mean is {mean:.3g}, not above 0: returning "
                "NaN, with which nothing is significant; for signed scores take the threshold 0",
                DegenerateAttributionsWarning,
            )
            return math.nan
        return self.factor * mean
