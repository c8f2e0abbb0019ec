"""Ratio of two means over the same cases, and how sure it is."""

from __future__ import annotations

import numpy as np

__all__ = ["ratio_of_means"]


def ratio_of_means(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """Sum of `above` over that of `below`, (n,) each, and its standard error by the jackknife over the cases.

    Where `below` is all ones it is the mean, whose jackknife is the usual standard error. NaN where there is none.
    """
    n = len(above)
    if not n or below.sum() == 0:
        return np.nan, np.nan
    if n == 1:
        return float(above[0] / below[0]), np.nan
    left_out = (above.sum() - above) / (below.sum() - below)
    return float(above.sum() / below.sum()), float(np.sqrt((n - 1) * left_out.var()))
