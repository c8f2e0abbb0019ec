"""The incomplete beta function in logarithms, for arrays; at run time nothing but NumPy is needed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["log_beta", "log_binomial_tail", "log_incomplete_beta"]

TINY = 1e-300
PRECISION = 1e-15
MOST_TERMS = 1_000_000  # about the square root of a + b are needed


def log_beta(a: Any, b: Any) -> np.ndarray:
    """Logarithm of the beta function, elementwise."""
    a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    return _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)


def log_incomplete_beta(x: Any, a: Any, b: Any, *, rest: Any = None) -> np.ndarray:
    r"""Logarithm of :math:`\int_0^x t^{a-1} (1-t)^{b-1} dt`, elementwise, for x in (0, 1) and positive a, b.

    `rest` is 1 - x, for x so near to 1 that a float does not hold the difference.

    By the continued fraction of the regularised function (DLMF 8.17.22), with x and 1 - x exchanged where it converges
    slowly. Below the mean a / (a + b) nothing cancels, so that the far tail is as exact as the rest.
    """
    rest = 1 - np.asarray(x) if rest is None else rest
    x, rest, a, b = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in (x, rest, a, b)))
    found = np.empty(x.shape)
    direct = x <= (a + 1) / (a + b + 2)
    found[direct] = _by_fraction(*(values[direct] for values in (x, rest, a, b)))
    x, rest, a, b = (values[~direct] for values in (x, rest, a, b))
    whole = log_beta(a, b)
    with np.errstate(under="ignore"):
        beyond = np.exp(np.minimum(_by_fraction(rest, x, b, a) - whole, 0.0))
    found[~direct] = whole + np.log1p(-np.minimum(beyond, 1 - 2.0**-53))
    return found


def log_binomial_tail(count: Any, n: int, probability: Any) -> np.ndarray:
    """Logarithm of P(B >= count), B ~ Binomial(n, probability), elementwise, for counts in 1..n."""
    count = np.asarray(count, np.float64)
    return log_incomplete_beta(probability, count, n - count + 1) - log_beta(count, n - count + 1)


def _log_gamma(values: np.ndarray) -> np.ndarray:
    return np.fromiter(map(math.lgamma, values.ravel().tolist()), np.float64, values.size).reshape(values.shape)


def _by_fraction(x: np.ndarray, rest: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a * np.log(x) + b * _log_rest(x, rest) - np.log(a) + np.log(_fraction(x, a, b))


def _log_rest(x: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Logarithm of 1 - x, by whichever of the two numbers holds it to more digits."""
    return np.where(rest < 0.5, np.log(rest), np.log1p(-np.minimum(x, 0.5)))


def _fraction(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """1 / (1 + d1 / (1 + d2 / (1 + ...))) by Lentz's method; entries leave as they converge."""
    found = np.empty(x.shape)
    left: Any = np.arange(x.size)
    c, d = np.ones(x.size), _away_from_zero(1 - (a + b) * x / (a + 1))
    d = 1 / d
    value = d.copy()
    for m in range(1, MOST_TERMS):
        if not left.size:
            return found
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away_from_zero(1 + factor * d)
            c = _away_from_zero(1 + factor / c)
            change = c * d
            value = value * change
        going = np.abs(change - 1) > PRECISION
        if not going.all():
            found[left[~going]] = value[~going]
            left, x, a, b, c, d, value = (part[going] for part in (left, x, a, b, c, d, value))
    raise ArithmeticError(f"the continued fraction does not converge for a={a[:1]}, b={b[:1]}, x={x[:1]}")


def _away_from_zero(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) < TINY, TINY, values)
