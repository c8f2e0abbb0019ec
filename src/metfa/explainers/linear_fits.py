"""Linear models with a ridge penalty, fitted to scores of changed copies; and the signs that only a penalty makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from metfa._base.percents import percent, rows_of_one_call
from metfa._base.warnings import DegenerateAttributionsWarning, warn

__all__ = ["Ridge", "warn_of_penalty", "weighted_ridge", "without_pull"]

SINGULAR = 1e-12  # directions with less than this share of the largest scatter are not in the data
DETERMINED = 0.9  # least share of the coefficients that a penalty must leave before least squares know their signs
PULLED = 0.5  # of the coefficients: with less, a warning says that the penalty decides


class Ridge(NamedTuple):
    r"""A weighted linear fit.

    Attributes
    ----------
    coefficients : ndarray, (n_features,)
    intercept, r2 : float
    kept : float
        Share of the coefficients that the penalty leaves, in [0, 1]: the effective degrees of freedom,
        :math:`\sum_j \lambda_j / (\lambda_j + \alpha)` of the eigenvalues of the weighted features' scatter, over
        n_features (Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, 2nd ed., equation 3.50). 1
        where the scores do not vary.
    """

    coefficients: np.ndarray
    intercept: float
    r2: float
    kept: float


def weighted_ridge(features: np.ndarray, scores: np.ndarray, weights: np.ndarray, penalty: float) -> Ridge:
    """Coefficients, intercept and weighted R² of scikit-learn's ``Ridge(penalty).fit(features, scores, weights)``.

    Scores that differ only by rounding in their own precision count as equal: a batch of another size rounds
    differently, and would give other coefficients.

    A coefficient is 0 if it has its sign from the penalty alone: least squares give it the other sign, or nothing but
    rounding. The penalty draws features that count for nothing towards those that do, always to the same side, and a
    test of many runs would find that. This holds where the penalty leaves at least 0.9 of the coefficients; with less,
    least squares know no signs either.
    """
    n_rows, n_features = features.shape
    if not np.isfinite(scores).all():
        return Ridge(np.full(n_features, np.nan), np.nan, np.nan, 1.0)
    step = 4 * np.finfo(scores.dtype).eps * np.abs(scores).max()
    if np.ptp(scores) <= step:
        return Ridge(np.zeros(n_features), float(scores[0]), 0.0, 1.0)
    share = weights / weights.sum()
    means, mean = share @ features, share @ scores.astype(np.float64)
    rows, deviations = np.sqrt(weights)[:, None] * (features - means), np.sqrt(weights) * (scores - mean)
    small = n_features <= n_rows
    scatter = rows.T @ rows if small else rows @ rows.T
    sizes, axes = np.linalg.eigh(scatter)
    sizes = np.where(sizes > SINGULAR * sizes[-1], sizes, 0)
    kept = np.divide(sizes, sizes + penalty, out=np.zeros_like(sizes), where=sizes > 0)
    inverse = np.divide(1, sizes, out=np.zeros_like(sizes), where=sizes > 0)

    def solved(shares: np.ndarray) -> np.ndarray:
        if small:
            return axes @ (shares * inverse * (axes.T @ (rows.T @ deviations)))
        return rows.T @ (axes @ (shares * inverse * (axes.T @ deviations)))

    coefficients, left = solved(kept), float(kept.sum() / n_features)
    total, residual = np.sum(deviations**2), np.sum((deviations - rows @ coefficients) ** 2)
    r2 = float(1 - residual / total) if total > 0 else 0.0
    if left >= DETERMINED:
        coefficients = without_pull(coefficients, solved(np.ones_like(kept)), scores)
    return Ridge(coefficients, float(mean - means @ coefficients), r2, left)


def warn_of_penalty(fits: Sequence[Any], regularization: float, copies: int) -> None:
    """Warn of fits of which the ridge penalty takes more than half, but that are better than luck."""
    pulled = [fit for fit in fits if fit.kept < PULLED and fit.r2 * (copies - 1) > len(fit.coefficients)]
    if pulled:
        warn(
            f"LIME's ridge penalty of {regularization:g} takes {percent(1 - min(fit.kept for fit in pulled), 0)} of "
            f"the coefficients of {rows_of_one_call(len(pulled), len(fits))}: too few of {copies} copies are close "
            "enough to count; take more `n_perturbations`, a larger `kernel_width` or a smaller `regularization`",
            DegenerateAttributionsWarning,
        )


def without_pull(coefficients: np.ndarray, free: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Coefficients of a fit with a penalty; 0 where the fit without it has another sign, or is only rounding.

    Most models answer in single precision, so this is the rounding of `scores`, whatever they are kept in.
    """
    rounding = 4 * np.finfo(np.float32).eps * np.abs(scores).max()
    return np.where((coefficients * free > 0) & (np.abs(free) > rounding), coefficients, 0.0)
