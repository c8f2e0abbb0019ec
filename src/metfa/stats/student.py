"""Means and ratios of means over few cases: their standard errors, and intervals by Student's t."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from metfa.stats._incomplete_beta import log_regularised_beta

__all__ = ["half_width", "ratio_of_means", "t_quantile"]

LEVEL = 0.95  # of the error bars of studies


@cache
def t_quantile(confidence_level: float, degrees: int) -> float:
    r"""The t for which :math:`P(|T| \le t)` is `confidence_level`, for so many degrees of freedom.

    With :math:`x = \nu / (\nu + t^2)` it is :math:`P(|T| > t) = I_x(\nu / 2, 1 / 2)` (DLMF 8.17, Abramowitz and Stegun
    26.7.1), solved for x by bisection.
    """
    if not (0 < confidence_level < 1 and degrees >= 1):
        raise ValueError(f"needs a level in (0, 1) and at least 1 degree of freedom, got {confidence_level}, {degrees}")
    wanted = math.log(1 - confidence_level)
    low, high = -745.0, 0.0  # logarithm of x
    for _ in range(80):
        middle = (low + high) / 2
        x = math.exp(middle)
        beyond = float(log_regularised_beta(x, degrees / 2, 0.5, rest=-math.expm1(middle)))
        low, high = (middle, high) if beyond < wanted else (low, middle)
    return math.sqrt(degrees * math.expm1(-(low + high) / 2))


def half_width(standard_error: float, n: int, confidence_level: float = LEVEL) -> float:
    """Half the width of the interval of a mean, or of a jackknifed ratio of means, over `n` cases; nan for one case."""
    return standard_error * t_quantile(confidence_level, n - 1) if n > 1 else math.nan


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
