"""The fused lasso: linear regression with a penalty on the steps between neighbouring coefficients."""

from __future__ import annotations

import numpy as np

__all__ = ["fused_lasso", "fused_lasso_of_moments", "unfused"]

RIDGE = 1e-10  # share of the largest diagonal entry: collinear columns share their effect, no matrix is singular
TOLERANCE = 1e-10  # share of the largest gradient at zero: the slack within which an optimality condition counts as met
STEPS = 100  # most steps of the active set for each coefficient; without a bound, rounding could make them endless


def fused_lasso(
    features: np.ndarray, response: np.ndarray, weights: np.ndarray, penalty: float, start: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    r"""Minimise ½ Σ wᵢ (yᵢ - b₀ - xᵢ·b)² + λ Σ |bⱼ₊₁ - bⱼ| over intercept and coefficients.

    Parameters
    ----------
    features : ndarray of float, (n, p)
        A column loses digits if its mean is far larger than its spread: centre it first. Zeros and ones are fine.
    response, weights : ndarray, (n,)
        No weight may be negative.
    penalty : float
        λ; 0 is the weighted least-squares fit.
    start : ndarray, (p,), optional
        Coefficients to start from; they change only the time.

    Returns
    -------
    coefficients : ndarray, (p,)
    intercept : float
        Not penalised. If no row has any weight, coefficients and intercept are 0.

    Notes
    -----
    Equal columns share their effect (a ridge of 1e-10 of the largest variance). Memory: a few matrices (p, p) and one
    (n, p).
    """
    total = weights.sum()
    if not total > 0:
        return np.zeros(features.shape[1]), 0.0
    weighted = features.T * weights
    means, mean = weighted.sum(axis=1) / total, float(weights @ response / total)
    gram = weighted @ features - total * np.outer(means, means)
    coefficients = fused_lasso_of_moments(gram, weighted @ (response - mean), penalty, start)
    return coefficients, float(mean - means @ coefficients)


def unfused(
    features: np.ndarray, response: np.ndarray, weights: np.ndarray, coefficients: np.ndarray
) -> np.ndarray | None:
    """Coefficients with the same blocks of equal ones, by least squares, (p,); None if blocks are too many for that.

    Their distance from `coefficients` is what the penalty moves.
    """
    starts = np.concatenate([[0], np.flatnonzero(np.diff(coefficients)) + 1])
    if 2 * len(starts) > weights.sum():
        return None
    levels, _ = fused_lasso(np.add.reduceat(features, starts, axis=1), response, weights, 0.0)
    return np.repeat(levels, np.diff(np.append(starts, len(coefficients))))


def fused_lasso_of_moments(
    gram: np.ndarray, moments: np.ndarray, penalty: float, start: np.ndarray | None = None
) -> np.ndarray:
    r"""Minimise ½ b'Gb - m'b + λ Σ |bⱼ₊₁ - bⱼ| over b, exactly, by an active set.

    Coefficients between two steps are equal; they form a block. For given steps and signs, the best levels of the
    blocks solve a linear system. The search moves towards this solution. If a step shrinks to nothing on the way, it
    stops there and merges the two blocks. At the solution it splits a block where that lowers the objective most. The
    objective always falls, so no set of steps comes twice.

    At the optimum the running sums uⱼ of the gradient Gb - m are λ·sign(bⱼ₊₁ - bⱼ) at the steps, within ±λ elsewhere,
    and 0 at the end.
    """
    p = len(moments)
    scale = gram.diagonal().max()
    if scale == 0:
        return np.zeros(p)
    gram = gram + RIDGE * scale * np.eye(p)
    if penalty == 0:
        return np.linalg.solve(gram, moments)
    slack = TOLERANCE * max(np.abs(np.cumsum(moments)).max(), penalty)
    b = np.zeros(p) if start is None else start.astype(np.float64)
    steps = np.flatnonzero(np.diff(b))  # a step lies between j and j + 1
    signs = np.sign(np.diff(b))[steps]
    for _ in range(STEPS * p):
        goal = _levels(gram, moments, penalty, steps, signs)
        before, after = np.diff(b)[steps], np.diff(goal)[steps]
        vanish = after * signs <= 0
        if (vanish & (before == 0)).any():
            break  # a new step leaves zero in the right direction; one that does not comes from rounding
        if vanish.any():
            where = np.full(len(steps), np.inf)
            where[vanish] = before[vanish] / (before - after)[vanish]
            gone = where <= where.min()
            b = b + where.min() * (goal - b)
            steps, signs = steps[~gone], signs[~gone]
            b = _equal_within(b, steps)
            continue
        b = goal
        sums = np.cumsum(gram @ b - moments)[:-1]
        excess = np.abs(sums) - penalty
        excess[steps] = -np.inf
        if p == 1 or excess.max() <= slack:
            break
        new = int(excess.argmax())
        at = int(np.searchsorted(steps, new))
        steps, signs = np.insert(steps, at, new), np.insert(signs, at, np.sign(sums[new]))
    return b


def _levels(gram: np.ndarray, moments: np.ndarray, penalty: float, steps: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The best coefficients with these steps, if the steps keep their signs."""
    starts = np.concatenate([[0], steps + 1])
    blocks = np.add.reduceat(np.add.reduceat(gram, starts, axis=0), starts, axis=1)
    pull = np.diff(penalty * signs, prepend=0, append=0)
    levels = np.linalg.solve(blocks, np.add.reduceat(moments, starts) + pull)
    return np.repeat(levels, np.diff(np.append(starts, len(moments))))


def _equal_within(b: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The coefficients, made equal within each block: differences by rounding would look like steps."""
    starts = np.concatenate([[0], steps + 1])
    return np.repeat(b[starts], np.diff(np.append(starts, len(b))))
