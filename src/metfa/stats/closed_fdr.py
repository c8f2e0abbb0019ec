"""Closed e-BH: the e-BH method, improved by looking at all intersections of the hypotheses."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import from_host, namespace
from metfa.stats._multiplicity import e_bh
from metfa.stats.validation import as_axis, as_level, as_log_e_values

__all__ = ["closed_e_bh", "first_rejected"]

LARGE = 690.0  # logarithm of an e-value; larger ones decide the same


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

    Only numbers r are tried that part no equal e-values, and each in O(k log k) operations for k different e-values:
    of the sets I with j rejected hypotheses, the worst one holds the smallest j of them and all others below
    j / (alpha r), and its sum less what it owes is concave in j within equal e-values, so that their ends are enough.
    A set that forbids r also forbids the next smaller numbers, up to a bound that it gives, so that few are tried.

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
    of_e_bh = e_bh(families, axis=-1) <= alpha
    rejected = np.zeros(families.shape, bool)
    for place in np.ndindex(families.shape[:-1]):
        different, sizes = np.unique(families[place], return_counts=True)
        above = int(np.searchsorted(np.cumsum(sizes), sizes.sum() - np.count_nonzero(of_e_bh[place]), side="right"))
        values = np.exp(np.minimum(different + np.log(alpha), LARGE))
        first = first_rejected(values, sizes, int(np.searchsorted(different, 0, side="right")), above)
        if first < len(different):
            rejected[place] = families[place] >= different[first]
    rejected = rejected.reshape(logs.shape) if axis is None else np.moveaxis(rejected, -1, as_axis(axis, logs.ndim))
    return from_host(rejected, log_e_values, namespace(log_e_values).bool)


def first_rejected(values: np.ndarray, sizes: np.ndarray, least: int, of_e_bh: int) -> int:
    """Place of the least e-value that closed e-BH rejects, among different ones in ascending order.

    Parameters
    ----------
    values : ndarray, (k,)
        The e-values times alpha, finite.
    sizes : ndarray, (k,)
        How many hypotheses have each, more than 0; may be expected numbers.
    least : int
        Place of the first e-value above 1.
    of_e_bh : int
        The place from which e-BH rejects, k if it rejects none. It is the answer where no lower place is rejected.

    Returns
    -------
    int
        In 0, ..., `of_e_bh`.
    """
    m = float(sizes.sum())
    values = np.minimum(values, max(m, 1.0))  # no mean above 1 forbids anything
    n_before, sum_before = (np.concatenate([[0.0], np.cumsum(each)]) for each in (sizes, sizes * values))
    places = np.arange(least, of_e_bh)
    owed = sizes[places] / (m - n_before[places])  # by each of the smallest rejected, and of all that are too small
    below = np.minimum(np.searchsorted(values, owed), places)
    places = places[sizes[places] * (values[places] - owed) >= owed * n_before[below] - sum_before[below]]
    while len(places):
        n_forbidden = _numbers_forbidden(values, sizes, n_before, sum_before, int(places[0]))
        if not n_forbidden:
            return int(places[0])
        rest = places[1:]
        places = rest[n_before[rest] >= n_before[places[0]] + n_forbidden - 1e-6]
    return of_e_bh


def _numbers_forbidden(
    values: np.ndarray, sizes: np.ndarray, n_before: np.ndarray, sum_before: np.ndarray, first: int
) -> float:
    """0 if all r from the place `first` on may be rejected, else how many of r, r - 1, ... may surely not be.

    A set I with the mean q and the j smallest of r forbids r if q < j / r. Of r - d, it holds at least j - d; so it
    forbids that too while q < (j - d) / (r - d).
    """
    held = np.cumsum(sizes[first:])
    r = held[-1]
    owed = held / r
    below = np.searchsorted(values[:first], owed)
    n, total = held + n_before[below], np.cumsum((sizes * values)[first:]) + sum_before[below]
    missing = owed * n - total
    bad = missing > 0
    return float((r * missing[bad] / (n - total)[bad]).max(initial=0))
