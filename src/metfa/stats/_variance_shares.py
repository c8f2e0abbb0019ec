"""Shares of a variance: between groups, within them, and between repetitions, by random effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa._base.validation import positive_int
from metfa.stats.validation import as_level

__all__ = ["VarianceShares", "variance_shares"]

BLOCK = 2**22  # numbers of all resamples that are held at a time


@dataclass(frozen=True, eq=False)
class VarianceShares:
    r"""Estimated shares of a variance, the sources along the first axis; nan where nothing varies.

    Attributes
    ----------
    shares, low, high : ndarray, (sources, \*features)
        Shares, and the ends of their bootstrap intervals. Sources are the groups, the members of a group, and with
        repetitions these.
    pooled, pooled_low, pooled_high : ndarray, (sources,)
        The same for all features together: shares of the sum of their variances.
    negative : ndarray of bool, (sources, \*features)
        Whether the estimate of a source was below 0 and was set to 0.
    """

    shares: np.ndarray
    low: np.ndarray
    high: np.ndarray
    pooled: np.ndarray
    pooled_low: np.ndarray
    pooled_high: np.ndarray
    negative: np.ndarray


def variance_shares(
    values: Any, *, confidence_level: float = 0.95, n_resamples: int = 1000, rng: int = 0
) -> VarianceShares:
    r"""Shares of the variance between groups, between the members of a group, and between repetitions of a member.

    The estimates of the balanced random-effects model from mean squares (analysis of variance): with a groups of n
    members, the variance between groups is the mean square between groups less that within, over n [1]_. An estimate
    below 0 is set to 0. Intervals are percentiles of resampled groups [2]_.

    Parameters
    ----------
    values : array, (groups, members, repetitions, \*features)
        At least two groups of two members; one repetition where members were measured once. With one member a group
        there are no members to differ, and with one repetition no repetitions: such a source is left out.
    confidence_level : float
        Level of the bootstrap intervals, which is reached only with many groups, see Notes.
    n_resamples : int
        Number of resamples of the groups.
    rng : int
        Seed of the resamples.

    Returns
    -------
    VarianceShares
        Of the groups, then of the members and of the repetitions where there are several.

    Notes
    -----
    Groups that are drawn again do not differ, so the mean square between resampled groups is a / (a - 1) times as large
    as computed. The intervals are too narrow all the same: for a level of .95 and a true share of .8, simulated ones of
    one feature held it in .83 of data sets with 6 groups, .86 with 10 and .89 with 30.

    References
    ----------
    .. [1] S. R. Searle, G. Casella and C. E. McCulloch, "Variance Components", Wiley, 1992, sections 3.5 and 5.2.
    .. [2] B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", Chapman & Hall, 1993, chapter 13.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> groups = rng.normal(0, 3, size=(200, 1, 1, 1))
    >>> found = variance_shares(groups + rng.normal(0, 1, size=(200, 20, 1, 1)))
    >>> np.round(found.pooled, 1)
    array([0.9, 0.1])
    """
    level = as_level(confidence_level, "confidence_level")
    positive_int(n_resamples, "n_resamples")
    positive_int(rng, "rng", minimum=0)
    values = to_host(as_array(values, "values"))
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise ValueError(f"`values` must hold finite numbers, got {values.dtype} {values.shape}")
    if values.ndim < 3 or values.shape[0] < 2 or values.shape[1] * values.shape[2] < 2:
        raise ValueError(
            "`values` must hold two groups of two members or more, (groups, members, repetitions, *features), got "
            f"shape {values.shape}"
        )
    a, n, k, *features = values.shape
    flat = values.reshape(a, n, k, -1)
    drawn = np.random.default_rng(rng).multinomial(a, np.full(a, 1 / a), size=n_resamples)
    weights = np.concatenate([np.ones((1, a)), drawn])
    m = flat.shape[-1]
    step = max(1, BLOCK // len(weights))
    parts, squares = [], 0.0
    for start in range(0, m, step):
        of_block = _mean_squares(flat[..., start : start + step], weights)
        squares = squares + of_block.sum(axis=-1)
        shares, negative = _shares(of_block, n, k)
        parts.append((shares[:, 0], *_ends(shares[:, 1:], level), negative[:, 0]))
    shares, low, high, negative = (
        np.concatenate(part, axis=-1).reshape(-1, *features) for part in zip(*parts, strict=True)
    )
    pooled, _ = _shares(np.asarray(squares), n, k)
    return VarianceShares(shares, low, high, pooled[:, 0], *_ends(pooled[:, 1:], level), negative)


def _mean_squares(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean squares (sources, resamples, features): between groups, members of a group, repetitions of a member.

    `values` (a, n, k, features), `weights` (resamples, a) say how often each group was drawn; the first are the groups
    themselves. Those of a source with one entry are 0.
    """
    a, n, k, _ = values.shape
    middle = values.mean(axis=(0, 1, 2), dtype=np.float64)
    of_members = values.mean(axis=2, dtype=np.float64) - middle
    of_groups = of_members.mean(axis=1)
    total = weights @ of_groups
    between = np.maximum(weights @ of_groups**2 - total**2 / a, 0) * (n * k / (a - 1))
    between[1:] *= a / (a - 1)
    members = k * of_members.var(axis=1, ddof=1) if n > 1 else np.zeros_like(of_groups)
    repetitions = np.zeros_like(of_groups)
    if k > 1:
        repetitions = values.var(axis=2, ddof=1, dtype=np.float64).mean(axis=1)
    return np.stack([between, weights @ members / a, weights @ repetitions / a])


def _shares(squares: np.ndarray, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares of the sources that there are, and whether an estimate was below 0, from mean squares."""
    between, members, repetitions = squares
    within = members if n > 1 else repetitions
    sources = [(between - within) / (n * k)]
    if n > 1:
        sources.append((members - repetitions) / k)
    if k > 1:
        sources.append(repetitions)
    found = np.stack(sources)
    positive = np.maximum(found, 0)
    total = positive.sum(axis=0)
    shares = np.divide(positive, total, out=np.full(positive.shape, np.nan), where=total > 0)
    return shares, found < 0


def _ends(shares: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Percentiles over the resamples, the second axis; nan where nothing varies."""
    lost = np.asarray(np.isnan(shares).all(axis=1))
    low, high = np.nanquantile(np.where(lost[:, None], 0.0, shares), [(1 - level) / 2, (1 + level) / 2], axis=1)
    return np.where(lost, np.nan, low), np.where(lost, np.nan, high)
