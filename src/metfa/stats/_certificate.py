"""Certificates under Gaussian noise: how far an input can move before a median can cross a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from metfa._arrays import from_host, real_dtype, to_host
from metfa._base.validation import check_flag, check_number, positive_int
from metfa.stats._incomplete_beta import log_binomial_tail
from metfa.stats._ranks import Ranks, median_ranks
from metfa.stats.sequential import MOST_SAMPLES, fewest_reaching, log_e_at, log_e_table, sequence_ranks
from metfa.stats.validation import as_counts, as_level

__all__ = ["certified_radius", "certified_ranks", "proportion_bound"]

HALVINGS = 60  # of the interval that holds the bound; after that it is narrower than the spacing of floats
NORMAL = NormalDist()


def proportion_bound(counts: Any, n: int, alpha: float, *, sequential: bool = False) -> Any:
    r"""Lower confidence bound of the probability of an event, from how often the event was seen.

    Parameters
    ----------
    counts : array of int
        How often the event was seen, in 0..n.
    n : int
        Number of independent samples.
    alpha : float
        The bound exceeds the probability with at most this chance.
    sequential : bool
        False: the bound of Clopper and Pearson [1]_, for an `n` that was fixed beforehand. True: the largest p0 that
        `log_e_values` rejects. This bound holds at all n at once, so the trials may stop because of their results.

    Returns
    -------
    array of float
        Bounds in [0, 1), in the shape and library of `counts`; rounded down, never up.

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson, "The Use of Confidence or Fiducial Limits Illustrated in the Case of the
       Binomial", Biometrika 26, 1934.

    Examples
    --------
    >>> from metfa import stats
    >>> stats.proportion_bound([0, 95, 100], 100, 0.05).round(4)
    array([0.    , 0.8977, 0.9705])
    """
    n, alpha = positive_int(n, "n", maximum=MOST_SAMPLES), as_level(alpha, "alpha")
    check_flag(sequential, "sequential")
    counts, host = as_counts(counts, n)
    distinct, place = np.unique(host, return_inverse=True)
    bounds = (_at_any_time if sequential else _clopper_pearson)(distinct, n, alpha)
    return from_host(bounds[place].reshape(host.shape), counts, real_dtype(counts))


def _clopper_pearson(counts: np.ndarray, n: int, alpha: float) -> np.ndarray:
    """Largest p with P(B >= count) <= alpha, B ~ Binomial(n, p)."""
    positive = np.maximum(counts, 1)
    bounds = _largest(lambda p: log_binomial_tail(positive, n, p) <= math.log(alpha), len(counts))
    return np.where(counts > 0, bounds, 0.0)


def _at_any_time(counts: np.ndarray, n: int, alpha: float) -> np.ndarray:
    """Largest p0 whose e-value reaches 1 / alpha; e-values fall as p0 grows."""
    seen = counts.astype(np.float64)
    return _largest(lambda p: log_e_at(seen, n, p) >= -math.log(alpha), len(counts))


def _largest(holds: Callable[[np.ndarray], np.ndarray], size: int) -> np.ndarray:
    """Largest p in [0, 1) up to which a condition holds, approached from below; 0 where it holds nowhere."""
    low, high = np.zeros(size), np.ones(size)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        inside = (middle > low) & (middle < high)  # until floats are neighbours
        held = holds(np.where(inside, middle, 0.5)) & inside
        low, high = np.where(held, middle, low), np.where(held, high, middle)
    return low


def certified_radius(counts: Any, n: int, alpha: float, *, sequential: bool = False) -> Any:
    r"""How far an input can move before the median of a feature can come back to the threshold.

    The samples are explanations under Gaussian noise of standard deviation :math:`\sigma`. `counts` of them lie on
    one side of a threshold. With p the bound of `proportion_bound`, the median stays on that side for every change of
    the input that is shorter, in L2, than :math:`\sigma \Phi^{-1}(p)` [1]_.

    Parameters
    ----------
    counts, n, alpha, sequential
        As for `proportion_bound`.

    Returns
    -------
    array of float
        Radii in units of :math:`\sigma`, not below 0. Where it is 0, nothing is certified, not even the input itself.

    Notes
    -----
    The threshold must be a number that does not depend on these samples, and it is the same for the moved input. The
    statement holds with probability at least 1 - alpha for each count. It is about the law under noise, not about the
    N samples that somebody would draw for the moved input.

    References
    ----------
    .. [1] J. Cohen, E. Rosenfeld and Z. Kolter, "Certified Adversarial Robustness via Randomized Smoothing", ICML 2019,
       theorem 1, for each feature.

    Examples
    --------
    >>> from metfa import stats
    >>> [round(float(stats.certified_radius([n], n, 0.05)[0]), 3) for n in (10, 100, 1000)]
    [0.647, 1.888, 2.749]
    """
    counts, _ = as_counts(counts, positive_int(n, "n", maximum=MOST_SAMPLES))
    bounds = to_host(proportion_bound(counts, n, alpha, sequential=sequential)).astype(np.float64)
    distinct, place = np.unique(bounds, return_inverse=True)
    radii = np.array([NORMAL.inv_cdf(bound) if bound > 0.5 else 0.0 for bound in distinct.tolist()])
    return from_host(radii[place].reshape(bounds.shape), counts, real_dtype(counts))


def certified_ranks(n: int, radius: float, confidence_level: float = 0.95, *, sequential: bool = False) -> Ranks:
    r"""Ranks of an interval that holds the median of every input within a radius.

    Move the input by at most `radius` (r) standard deviations of the Gaussian noise. The median of an explanation
    then stays between the quantiles :math:`\Phi(-r)` and :math:`\Phi(r)` of the law at the input itself. The interval
    misses each of these two quantiles with at most half of the error.

    Parameters
    ----------
    n : int
        Number of samples.
    radius : float
        Largest L2 change of the input, in standard deviations of the noise; 0 gives `median_ranks`.
    confidence_level : float, default: 0.95
        Least probability that the interval holds every such median.
    sequential : bool
        False: for an `n` that was fixed beforehand. True: sampling may stop at `n` because of what was seen, as for
        `sequence_ranks`.

    Returns
    -------
    Ranks
        Ranks for `median_interval`. ``confidence_level`` is the level that is reached, or with `sequential` the level
        asked for.

    Raises
    ------
    ValueError
        If `n` samples are too few; the message names the smallest number.

    Examples
    --------
    >>> from metfa import stats
    >>> ranks = stats.certified_ranks(100, 0.25)
    >>> ranks.low, ranks.high
    (31, 70)
    """
    n, level = positive_int(n, "n", maximum=MOST_SAMPLES), as_level(confidence_level, "confidence_level")
    radius, sequential = check_number(radius, "radius"), check_flag(sequential, "sequential")
    if radius == 0:
        return sequence_ranks(n, level) if sequential else median_ranks(n, level)
    outer, miss = NORMAL.cdf(-radius), (1 - level) / 2
    if outer <= 1e-15:
        needed = None
    elif sequential:
        needed = fewest_reaching(1 / miss, probability=1 - outer)
    else:
        needed = math.ceil(math.log(miss) / math.log1p(-outer))
    if needed is None or needed > n:
        enough = "no number of samples is enough" if needed is None else f"at least {needed} are needed"
        raise ValueError(
            f"too few samples for `confidence_level`={level} within a radius of {radius:g} standard deviations: got "
            f"{n}, {enough}"
        )
    if sequential:
        low = n - int(np.searchsorted(log_e_table(n, 1 - outer), -math.log(miss))) + 1
        return Ranks(n, low, n + 1 - low, first=low, last=n + 1 - low, confidence_level=level, sequential=True)
    counts = np.arange(1, n + 1)
    # P(B < k), B ~ Binomial(n, outer), computed as a tail: 1 minus the other tail has no digits at strict levels.
    falls_short = np.exp(log_binomial_tail(n - counts + 1, n, 1 - outer, rest=outer))
    low = int(np.searchsorted(falls_short, miss, side="right"))
    reached = 1 - 2 * float(falls_short[low - 1])
    return Ranks(n, low=low, high=n + 1 - low, first=low, last=n + 1 - low, confidence_level=reached)
