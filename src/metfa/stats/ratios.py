"""The ratio of two means over the same cases, with its standard error."""

from __future__ import annotations

import numpy as np

__all__ = ["ratio_of_means"]


def ratio_of_means(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """Sum of `above` divided by the sum of `below`, (n,) each, and its standard error by the jackknife over the cases.

    If `below` is all ones, the ratio is the mean and the standard error the usual one. A value that does not exist is
    NaN.
    """
    n = len(above)
    if not n or below.sum() == 0:
        return np.nan, np.nan
    if n == 1:
        return float(above[0] / below[0]), np.nan
    left_out = (above.sum() - above) / (below.sum() - below)
    return float(above.sum() / below.sum()), float(np.sqrt((n - 1) * left_out.var()))
