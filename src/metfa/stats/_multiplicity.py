"""Corrections of p-values for many features, and how many false marks to expect without one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from metfa._arrays import from_host, is_floating, real_dtype
from metfa._base.validation import positive_int
from metfa.stats.sign_null import MOST_SAMPLES, largest_count
from metfa.stats.validation import as_axis, as_level, as_log_e_values, as_pvalues

__all__ = ["bh", "bonferroni", "by", "correct", "e_bh", "expected_false_marks", "holm"]


def bonferroni(pvalues: Any, *, axis: int | None = None) -> Any:
    """P-values adjusted by Bonferroni's method: the chance of any false rejection stays at the level.

    Parameters
    ----------
    pvalues : array
        P-values; those along `axis` form one family.
    axis : int, optional
        Axis of a family; by default all p-values form one.

    Returns
    -------
    array
        Adjusted p-values, ``min(1, m p)`` in a family of m, of the shape and library of `pvalues`: reject where they
        are at most alpha. Valid under any dependence.

    Raises
    ------
    ValueError
        If a p-value is NaN or outside [0, 1].

    Examples
    --------
    >>> from metfa import stats
    >>> stats.bonferroni([0.01, 0.02, 0.5])
    array([0.03, 0.06, 1.  ])
    """
    return _adjust(pvalues, axis, lambda p: p * p.shape[-1])


def holm(pvalues: Any, *, axis: int | None = None) -> Any:
    """P-values adjusted by Holm's step-down method: valid wherever Bonferroni's is, and never less powerful.

    Parameters
    ----------
    pvalues : array
        P-values; those along `axis` form one family.
    axis : int, optional
        Axis of a family; by default all p-values form one.

    Returns
    -------
    array
        Adjusted p-values, of the shape and library of `pvalues` [1]_: the i-th smallest of m becomes the largest of
        ``(m - j + 1) p_(j)`` over j <= i, at most 1.

    Raises
    ------
    ValueError
        If a p-value is NaN or outside [0, 1].

    References
    ----------
    .. [1] S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6,
       1979.

    Examples
    --------
    >>> from metfa import stats
    >>> stats.holm([0.01, 0.02, 0.5])
    array([0.03, 0.04, 0.5 ])
    """
    return _adjust(pvalues, axis, _in_order(_step_down))


def bh(pvalues: Any, *, axis: int | None = None) -> Any:
    """P-values adjusted by Benjamini and Hochberg's method: the false discovery rate stays at the level.

    Parameters
    ----------
    pvalues : array
        P-values; those along `axis` form one family.
    axis : int, optional
        Axis of a family; by default all p-values form one.

    Returns
    -------
    array
        Adjusted p-values, of the shape and library of `pvalues` [1]_: the i-th smallest of m becomes the least of
        ``m p_(j) / j`` over j >= i. For positive dependence and a threshold from other samples; `by` needs neither.

    Raises
    ------
    ValueError
        If a p-value is NaN or outside [0, 1].

    References
    ----------
    .. [1] Y. Benjamini and Y. Hochberg, "Controlling the False Discovery Rate", Journal of the Royal Statistical
       Society B 57, 1995.

    Examples
    --------
    >>> from metfa import stats
    >>> stats.bh([0.01, 0.02, 0.5])
    array([0.03, 0.03, 0.5 ])
    """
    return _adjust(pvalues, axis, _in_order(_step_up))


def by(pvalues: Any, *, axis: int | None = None) -> Any:
    """P-values adjusted by Benjamini and Yekutieli's method: the false discovery rate, under any dependence.

    Parameters
    ----------
    pvalues : array
        P-values; those along `axis` form one family.
    axis : int, optional
        Axis of a family; by default all p-values form one.

    Returns
    -------
    array
        Adjusted p-values, of the shape and library of `pvalues` [1]_: those of `bh` before the cut at 1, times
        ``1 + 1/2 + ... + 1/m``.

    Raises
    ------
    ValueError
        If a p-value is NaN or outside [0, 1].

    References
    ----------
    .. [1] Y. Benjamini and D. Yekutieli, "The Control of the False Discovery Rate in Multiple Testing under
       Dependency", Annals of Statistics 29, 2001.

    Examples
    --------
    >>> from metfa import stats
    >>> stats.by([0.01, 0.02, 0.5])
    array([0.055     , 0.055     , 0.91666667])
    """
    return _adjust(pvalues, axis, _in_order(lambda p: _step_up(p) * (1 / np.arange(1, p.shape[-1] + 1)).sum()))


def e_bh(log_e_values: Any, *, axis: int | None = None) -> Any:
    """Levels by the e-BH method: the false discovery rate, under any dependence and at any stopping time.

    Parameters
    ----------
    log_e_values : array
        Natural logarithms of e-values, as `log_e_values` returns, -inf for the e-value 0; those along `axis` form one
        family: one statement about each feature, such as "its median lies above the threshold".
    axis : int, optional
        Axis of a family; by default all form one.

    Returns
    -------
    array
        The least level at which each hypothesis is rejected [1]_: reject where it is at most alpha. With
        e_(1) >= e_(2) >= ... of m, the i-th level is the least of ``m / (j e_(j))`` over j >= i, at most 1.

    Raises
    ------
    ValueError
        If a value is NaN or +inf.

    Notes
    -----
    The rate holds for the e-values of one moment and the set that they reject, at any stopping time. It does not hold
    for the largest e-values of several looks, or for everything that any of these looks rejected. `closed_e_bh` rejects
    no fewer.

    References
    ----------
    .. [1] R. Wang and A. Ramdas, "False Discovery Rate Control with E-values", Journal of the Royal Statistical Society
       B 84, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import stats
    >>> stats.e_bh(np.log([100.0, 50.0, 0.1, 2.0])).round(3)
    array([0.04 , 0.04 , 1.   , 0.667])
    """
    log_e_values, logs = as_log_e_values(log_e_values)
    reciprocals = np.exp(-np.maximum(logs, 0))  # nothing is rejected at a level above 1, so 1 is the largest
    dtype = log_e_values.dtype if is_floating(log_e_values) else real_dtype(log_e_values)
    return from_host(bh(reciprocals, axis=axis), log_e_values, dtype)


METHODS: dict[str, Callable[..., Any]] = {"bonferroni": bonferroni, "holm": holm, "bh": bh, "by": by}
E_METHODS = ("e-bh", "closed-e-bh")


def check_method(method: Any, name: str) -> None:
    """Raise unless there is a correction called `method`; `name` is the name of the argument."""
    if not isinstance(method, str):
        raise TypeError(f"`{name}` must be a string or None, got {method!r} of type {type(method).__name__}")
    if method in E_METHODS:
        write = f"metfa.stats.{method.replace('-', '_')}(log_e_values)"
        raise ValueError(f"`{name}` {method!r} corrects e-values, not p-values: write {write}")
    if method not in METHODS:
        raise ValueError(f"`{name}` must be None or one of {', '.join(map(repr, METHODS))}, got {method!r}")


def correct(pvalues: Any, method: str | None, *, axis: int | None = None) -> Any:
    """P-values adjusted by the method of that name.

    Parameters
    ----------
    pvalues : array
        P-values; those along `axis` form one family.
    method : {None, "bonferroni", "holm", "bh", "by"}
        The function to apply; None leaves p-values as they are.
    axis : int, optional
        Axis of a family; by default all p-values form one.

    Returns
    -------
    array
        Adjusted p-values, of the shape and library of `pvalues`.

    Raises
    ------
    ValueError
        If there is no such method, or if a p-value is NaN or outside [0, 1].

    Notes
    -----
    A family holds one-sided p-values of one statement, or two-sided ones. The two one-sided p-values of a feature move
    in opposite directions, and the condition of "bh" excludes that in one family.

    Examples
    --------
    >>> from metfa import stats
    >>> stats.correct([0.01, 0.02, 0.5], "bonferroni")
    array([0.03, 0.06, 1.  ])
    """
    if method is None:
        return _adjust(pvalues, axis, lambda p: p)
    check_method(method, "method")
    return METHODS[method](pvalues, axis=axis)


def expected_false_marks(n: int, alpha: float, n_features: int) -> float:
    """Number of features marked by mistake, without correction, if every feature's median is at the threshold.

    Each of the two one-sided tests fires with probability ``P(B >= k*)``, where B ~ Binomial(n, 1/2) and k* is the
    smallest count whose tail is at most `alpha`; the figure is ``2 P(B >= k*) n_features``, for scores without ties.

    Parameters
    ----------
    n : int
        Number of samples.
    alpha : float
        Level of each one-sided test.
    n_features : int
        Number of features.

    Returns
    -------
    float
        The expected number; 0.0 if `n` is too small for any mark.

    Examples
    --------
    >>> from metfa import stats
    >>> [round(stats.expected_false_marks(n, 0.05, 224 * 224)) for n in (4, 10, 30, 50, 100)]
    [0, 1078, 4954, 3257, 4447]
    """
    n, n_features = positive_int(n, "n", maximum=MOST_SAMPLES), positive_int(n_features, "n_features")
    _, tail = largest_count(n, Fraction(as_level(alpha, "alpha")))  # P(B >= k*) = P(B <= n - k*)
    return 2 * tail * n_features / (1 << n)


def _adjust(pvalues: Any, axis: int | None, rule: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Apply `rule` to float64 p-values on the host, families along the last axis, and take the result back."""
    pvalues, p = as_pvalues(pvalues)
    families = p.reshape(1, -1) if axis is None else np.moveaxis(p, as_axis(axis, p.ndim), -1)
    adjusted = np.minimum(rule(families), 1)
    adjusted = adjusted.reshape(p.shape) if axis is None else np.moveaxis(adjusted, -1, as_axis(axis, p.ndim))
    return from_host(adjusted, pvalues, pvalues.dtype if is_floating(pvalues) else real_dtype(pvalues))


def _in_order(rule: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """`rule`, which takes ascending p-values, for p-values in any order."""

    def apply(p: np.ndarray) -> np.ndarray:
        order = np.argsort(p, axis=-1)
        adjusted = np.empty_like(p)
        np.put_along_axis(adjusted, order, rule(np.take_along_axis(p, order, axis=-1)), axis=-1)
        return adjusted

    return apply


def _step_down(ordered: np.ndarray) -> np.ndarray:
    m = ordered.shape[-1]
    return np.maximum.accumulate(ordered * np.arange(m, 0, -1), axis=-1)


def _step_up(ordered: np.ndarray) -> np.ndarray:
    m = ordered.shape[-1]
    ratios = ordered * (m / np.arange(1, m + 1))
    return np.minimum.accumulate(ratios[..., ::-1], axis=-1)[..., ::-1]
