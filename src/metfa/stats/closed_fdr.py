"""Closed e-BH: the e-BH method, improved by looking at all intersections of the hypotheses."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import from_host, namespace
from metfa.stats._multiplicity import e_bh
from metfa.stats.validation import as_axis, as_level, as_log_e_values

__all__ = ["closed_e_bh"]


def closed_e_bh(log_e_values: Any, alpha: float = 0.05, *, axis: int | None = None) -> Any:
    r"""Which hypotheses closed e-BH rejects: the false discovery rate, under any dependence, and never fewer than e-BH.

    Parameters
    ----------
    log_e_values : array
        Natural logarithms of e-values, as `log_e_values` returns, -inf for the e-value 0; those along `axis` form one
        family: one statement about each feature, such as "its median lies above the threshold".
    alpha : float, default: 0.05
        The false discovery rate.
    axis : int, optional
        Axis of a family; by default all form one.

    Returns
    -------
    array of bool
        True where a hypothesis is rejected, of the shape and library of `log_e_values`. There is no level for each
        hypothesis as in `e_bh`: a set that is rejected at one alpha need not hold the one of a smaller alpha.

    Raises
    ------
    ValueError
        If a value is NaN or +inf, or if `alpha` is no level.

    Notes
    -----
    The r largest e-values may be rejected if every non-empty set I of hypotheses, with R the r rejected ones, has

    .. math:: \frac{1}{|I|} \sum_{i \in I} e_i \ge \frac{|R \cap I|}{\alpha r}

    [1]_. The mean of the e-values of the true hypotheses is an e-value under any dependence; the false discovery rate
    is therefore at most alpha, also at a stopping time. The largest such r is taken, with two conditions of our own:
    equal e-values are rejected together or not at all, and none of at most 1 is, which does not speak for its feature.

    The proof needs hypotheses that are fixed beforehand: the threshold must be a number, or come from samples that
    are not tested. With a threshold from the tested samples use `e_bh`, which adds over single features.

    An r is checked in O(r log m) operations: of the sets I with j rejected hypotheses, the worst one holds the
    smallest j of them and all others below j / (alpha r). A set that forbids r also forbids the next smaller numbers,
    up to a bound that it gives, so that few are checked.

    References
    ----------
    .. [1] Z. Xu, A. Solari, L. Fischer, R. de Heide, A. Ramdas and J. Goeman, "Bringing Closure to False Discovery
       Rate Control: A General Principle for Multiple Testing", 2025, arXiv:2509.02517.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import stats
    >>> logs = np.log([100.0, 25.0, 0.1, 15.0])
    >>> stats.e_bh(logs) <= 0.05
    array([ True, False, False, False])
    >>> stats.closed_e_bh(logs)
    array([ True,  True, False,  True])
    """
    log_e_values, logs = as_log_e_values(log_e_values)
    alpha = as_level(alpha, "alpha")
    families = logs.reshape(1, -1) if axis is None else np.moveaxis(logs, as_axis(axis, logs.ndim), -1)
    fewest = np.count_nonzero(e_bh(families, axis=-1) <= alpha, axis=-1)
    rejected = np.zeros(families.shape, bool)
    for place in np.ndindex(fewest.shape):
        family, least = families[place], int(fewest[place])
        n_rejected = _largest_allowed(np.sort(family), alpha, least)
        if n_rejected:
            rejected[place] = family >= np.partition(family, -n_rejected)[-n_rejected]
    rejected = rejected.reshape(logs.shape) if axis is None else np.moveaxis(rejected, -1, as_axis(axis, logs.ndim))
    return from_host(rejected, log_e_values, namespace(log_e_values).bool)


def _largest_allowed(logs: np.ndarray, alpha: float, least: int) -> int:
    """How many of ascending `logs` are rejected, if `least`, as of e-BH, may be."""
    m = len(logs)
    values = np.exp(np.minimum(logs + np.log(alpha), np.log(max(m, 1))))  # alpha e; no mean above 1 forbids anything
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = m - np.flatnonzero(logs > np.concatenate([[-np.inf], logs[:-1]])[:m])  # where equal e-values end, from m on
    ends = ends[(ends > least) & (logs[m - ends] > 0)]
    share = 1 / ends  # what the smallest rejected e-value owes, alone and with all that are too small
    n_below = np.searchsorted(values, share)
    ends = ends[values[m - ends] >= share + share * n_below - sums[n_below]]
    while len(ends):
        skipped = _numbers_forbidden(values, sums, int(ends[0]))
        if not skipped:
            return int(ends[0])
        ends = ends[ends <= ends[0] - skipped]
    return least


def _numbers_forbidden(values: np.ndarray, sums: np.ndarray, r: int) -> int:
    """0 if the largest r of ascending `values` may be rejected, else how many of r, r - 1, ... may surely not be.

    A set I with the mean q and the j smallest of r forbids r if q < j / r. Of r - d, it holds at least j - d; so it
    forbids that too while q < (j - d) / (r - d).
    """
    rest = len(values) - r
    held = np.arange(1, r + 1)
    n_below = np.searchsorted(values[:rest], held / r)
    means = (np.cumsum(values[rest:]) + sums[n_below]) / (held + n_below)
    bad = means < held / r
    if not bad.any():
        return 0
    reach = (held[bad] - means[bad] * r) / (1 - means[bad])
    return max(1, int(np.ceil(reach.max() - 1e-6)))
