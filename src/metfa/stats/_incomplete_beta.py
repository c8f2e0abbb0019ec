"""The logarithm of the incomplete beta function, for arrays, with NumPy alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["log_beta_ratio", "log_binomial_tail", "log_regularised_beta"]

TINY = 1e-300
PRECISION = 1e-15
MOST_TERMS = 1_000_000  # about the square root of a + b are needed
STIRLING_FROM = 10.0  # with the terms below, exact to 1e-15
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # DLMF 5.11.1


def log_regularised_beta(x: Any, a: Any, b: Any, *, rest: Any = None) -> np.ndarray:
    r"""Logarithm of :math:`I_x(a, b)`, elementwise, for x in (0, 1) and positive a, b.

    `rest` is 1 - x; give it where x is so near to 1 that a float does not hold the difference.

    For a + b up to a million, the logarithm is exact to 1e-11, and to 14 digits where it is large.
    """
    x, rest, a, b = _together(x, a, b, rest)
    return log_beta_ratio(x, a, b, rest=rest) + _log_power(x, rest, a, b)


def log_beta_ratio(x: Any, a: Any, b: Any, *, rest: Any = None) -> np.ndarray:
    r"""Logarithm of :math:`I_x(a, b) B(a, b) / (x^a (1-x)^b)`, elementwise, as `log_regularised_beta`.

    It is the continued fraction of the regularised function (DLMF 8.17.22), with x and 1 - x exchanged where it
    converges slowly. The steep part of the tail is divided out, so that nothing cancels below the mean a / (a + b).
    """
    x, rest, a, b = _together(x, a, b, rest)
    found = np.empty(x.shape)
    direct = x <= (a + 1) / (a + b + 2)
    found[direct] = _by_fraction(*(values[direct] for values in (x, a, b)))
    x, rest, a, b = (values[~direct] for values in (x, rest, a, b))
    power = _log_power(x, rest, a, b)
    with np.errstate(under="ignore"):
        beyond = np.exp(np.minimum(_by_fraction(rest, b, a) + power, 0.0))
    found[~direct] = np.log1p(-np.minimum(beyond, 1 - 2.0**-53)) - power
    return found


def log_binomial_tail(count: Any, n: int, probability: Any, *, rest: Any = None) -> np.ndarray:
    """Logarithm of P(B >= count), B ~ Binomial(n, probability), elementwise, for counts in 1..n; `rest` as above."""
    count = np.asarray(count, np.float64)
    return log_regularised_beta(probability, count, n - count + 1, rest=rest)


def _together(x: Any, a: Any, b: Any, rest: Any) -> list[np.ndarray]:
    rest = 1 - np.asarray(x) if rest is None else rest
    return list(np.broadcast_arrays(*(np.asarray(value, np.float64) for value in (x, rest, a, b))))


def _log_power(x: np.ndarray, rest: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Logarithm of x^a (1-x)^b / B(a, b), by Stirling's formula; its large parts are computed together."""
    away = b * x - a * rest  # (a + b) times the distance from the mean
    steep = a * _log_of_ratio(away / a, x * (a + b) / a) + b * _log_of_ratio(-away / b, rest * (a + b) / b)
    level = (np.log(a) + np.log(b) - np.log(a + b) - math.log(2 * math.pi)) / 2
    return steep + level + _stirling_rest(a + b) - _stirling_rest(a) - _stirling_rest(b)


def _log_of_ratio(change: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Logarithm of a ratio, 1 + change, from the one of the two that holds more digits."""
    return np.where(np.abs(change) < 0.5, np.log1p(np.maximum(change, -0.5)), np.log(ratio))


def _stirling_rest(values: np.ndarray) -> np.ndarray:
    """The rest that Stirling's formula for the logarithm of the gamma function leaves out."""
    inverse = 1 / np.maximum(values, STIRLING_FROM)
    found = np.asarray(inverse * np.polynomial.polynomial.polyval(inverse**2, STIRLING))
    small = values < STIRLING_FROM
    found[small] = [
        math.lgamma(z) - (z - 0.5) * math.log(z) + z - math.log(2 * math.pi) / 2 for z in values[small].tolist()
    ]
    return found


def _by_fraction(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.log(_fraction(x, a, b)) - np.log(a)


def _fraction(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """1 / (1 + d1 / (1 + d2 / (1 + ...))) by Lentz's method; an entry that converged is not computed further."""
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
