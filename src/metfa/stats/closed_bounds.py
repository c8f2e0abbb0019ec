"""How many of any features, also of those chosen after a look at the data, are true discoveries: closed testing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa._base.validation import one_of
from metfa.stats.validation import as_level, as_log_e_values, as_pvalues

__all__ = ["DEPENDENCE", "EValueBounds", "SimesBounds", "TrueDiscoveries", "e_value_bounds", "simes_bounds"]

DEPENDENCE = ("any", "positive")
BITS = 60  # of the sums of e-values, which are exact integers


@dataclass(frozen=True, eq=False)
class TrueDiscoveries(ABC):
    """Lower bounds on the number of false null hypotheses in any set, all valid at once.

    Made by `simes_bounds` or `e_value_bounds` from all hypotheses of one family. With probability at least 1 - alpha,
    every bound that `among` gives is right, however many sets are asked about and however they were chosen.

    Attributes
    ----------
    shape : tuple of int
        Shape of the hypotheses.
    alpha : float
        Probability that any of the bounds is too large, at most.
    """

    shape: tuple[int, ...]
    alpha: float

    @property
    def n_hypotheses(self) -> int:
        """Number of hypotheses in the family."""
        return int(np.prod(self.shape))

    @property
    def whole(self) -> int:
        """The bound for all hypotheses together."""
        return self._of_places(np.arange(self.n_hypotheses))

    def among(self, regions: Any) -> int | np.ndarray:
        r"""At least so many of these hypotheses are false nulls, that is, true discoveries.

        Parameters
        ----------
        regions : array
            One set: a mask, bool of the shape of the hypotheses, or the places of its hypotheses in the flat order,
            integers (k,). Several sets: masks (n_sets, \*shape). They may overlap.

        Returns
        -------
        int, or ndarray of int (n_sets,)
            0 for an empty set. It takes O(k) operations for k hypotheses; `EValueBounds` sort up to k numbers.

        Raises
        ------
        TypeError, ValueError
            For another shape or dtype, and for places that repeat or do not exist.
        """
        given = to_host(as_array(regions, "regions"))
        if given.size == 0 and given.ndim == 1 and given.dtype.kind != "b":  # an empty list has a dtype of floats
            return 0
        if given.dtype.kind in "iu":
            return self._of_places(self._checked_places(given))
        if given.dtype.kind != "b":
            raise TypeError(f"`regions` must be masks of bool, or integers that are places, got {given.dtype}")
        if given.shape == self.shape:
            return self._of_places(np.flatnonzero(given))
        if given.shape[1:] != self.shape or given.ndim == 0:
            raise ValueError(
                f"`regions` must be a mask of the shape {self.shape}, or several (n_sets, ...), got {given.shape}"
            )
        return np.array([self._of_places(np.flatnonzero(mask)) for mask in given], dtype=np.int64)

    def _checked_places(self, places: np.ndarray) -> np.ndarray:
        if places.ndim != 1:
            raise ValueError(
                f"`regions` must be places along one axis, or masks of bool (write `mask.astype(bool)`), got integers "
                f"of the shape {places.shape}"
            )
        if places.min() < 0 or places.max() >= self.n_hypotheses:
            raise ValueError(
                f"`regions` must hold places in 0..{self.n_hypotheses - 1}, got {places.min()}..{places.max()}"
            )
        if len(np.unique(places)) < len(places):
            raise ValueError(
                "`regions` must hold each place once: write `numpy.unique(places)`, or `mask.astype(bool)` for a mask"
            )
        return places

    @abstractmethod
    def _of_places(self, places: np.ndarray) -> int:
        """`among` of one set, given by different places."""


@dataclass(frozen=True, eq=False)
class SimesBounds(TrueDiscoveries):
    """Bounds of `simes_bounds`; see there.

    Attributes
    ----------
    shape, alpha
        As for `TrueDiscoveries`.
    dependence : {"any", "positive"}
        The dependence among the p-values that the bounds allow.
    largest : int
        h, the size of the largest set that closed testing does not reject: no more hypotheses than that are true.
    steps : ndarray of int
        For each hypothesis, in the flat order, the smallest u >= 1 with ``h p <= u level``, at most m + 1; `level` is
        alpha, or alpha / (1 + 1/2 + ... + 1/h) for any dependence.
    """

    dependence: str
    largest: int
    steps: np.ndarray = field(repr=False)

    def _of_places(self, places: np.ndarray) -> int:
        size = len(places)
        counts = np.bincount(np.minimum(self.steps[places], size + 1), minlength=size + 2)[1 : size + 1]
        return int((np.cumsum(counts) - np.arange(size)).max(initial=0))


@dataclass(frozen=True, eq=False)
class EValueBounds(TrueDiscoveries):
    """Bounds of `e_value_bounds`; see there.

    Attributes
    ----------
    shape, alpha
        As for `TrueDiscoveries`.
    surplus : ndarray of int64
        ``alpha e - 1`` of each hypothesis, in the flat order, rounded down to a multiple of a power of 2 and in units
        of it; at most the `debt`, as more changes nothing.
    debt : int
        What is missing below 0 in all `surplus` together.
    """

    surplus: np.ndarray = field(repr=False)
    debt: int

    def _of_places(self, places: np.ndarray) -> int:
        surplus = self.surplus[places]
        paying = np.sort(surplus[surplus >= 0])
        enough = np.cumsum(paying) >= self.debt  # beyond the first, a sum may overflow
        return int(len(paying) - enough.argmax()) if enough.any() else 0


def simes_bounds(pvalues: Any, alpha: float = 0.05, *, dependence: str = "any") -> SimesBounds:
    r"""Bounds on the true discoveries in any set, from p-values, by closed testing.

    Parameters
    ----------
    pvalues : array
        P-values of all hypotheses of one family, of any shape, such as the one-sided p-values of "the median lies above
        the threshold" of all features of one input.
    alpha : float, default: 0.05
        Probability that any of the bounds is too large, at most.
    dependence : {"any", "positive"}
        "positive": Simes' test for each intersection. It is valid if the p-values of the true nulls are independent or
        positively dependent. "any": the test of Hommel, which is valid always and finds less.

    Returns
    -------
    SimesBounds
        ``bounds.among(mask)`` is the bound for a set.

    Raises
    ------
    ValueError
        If a p-value is NaN or outside [0, 1], or if `alpha` is no level.

    Notes
    -----
    An intersection of i hypotheses is rejected if any of its ordered p-values has
    :math:`p_{(k)} \le k \alpha / i`, for any dependence :math:`k \alpha / (i H_i)` with
    :math:`H_i = 1 + 1/2 + \ldots + 1/i` [2]_. A set S holds at least

    .. math:: \max_{1 \le u \le |S|} 1 - u + \#\{j \in S : h\, p_j \le u\, \alpha\}

    false nulls, where h is the size of the largest intersection that is not rejected [1]_; for any dependence with
    :math:`\alpha / H_h` for alpha. It is the exact bound of closed testing. Shares of a whole, SHAP values and
    differences from the rest are negatively dependent, for which no proof covers "positive".

    References
    ----------
    .. [1] J. J. Goeman, R. J. Meijer, T. J. P. Krebs and A. Solari, "Simultaneous Control of All False Discovery
       Proportions in Large-Scale Multiple Hypothesis Testing", Biometrika 106, 2019, :doi:`10.1093/biomet/asz041`.
    .. [2] G. Hommel, "Tests of the Overall Hypothesis for Arbitrary Dependence Structures", Biometrical Journal 25,
       1983.

    Examples
    --------
    >>> from metfa import stats
    >>> bounds = stats.simes_bounds([0.001, 0.002, 0.003, 0.004, 0.7, 0.9], dependence="positive")
    >>> bounds.whole, bounds.among([0, 1, 4])
    (4, 2)
    """
    pvalues, p = as_pvalues(pvalues)
    level = as_level(alpha, "alpha")
    one_of(dependence, "dependence", DEPENDENCE)
    ordered = np.sort(p, axis=None)
    harmonic = np.cumsum(1 / np.arange(1, max(p.size, 1) + 1))
    if dependence == "positive":
        largest, share = _largest_kept(ordered, level, p.size), level
    else:
        largest, above, share = p.size, p.size + 1, level
        while 0 < largest < above:  # sets larger than `largest` are all rejected, so that a smaller sum is enough
            above, share = largest, level / harmonic[largest - 1]
            largest = _largest_kept(ordered, share, above)
    return SimesBounds(p.shape, level, dependence, largest, _steps(p.ravel(), largest, share))


def _largest_kept(ordered: np.ndarray, share: float, most: int) -> int:
    """Size, at most `most`, of the largest set of ascending p-values that Simes' test does not reject.

    The i largest p-values are the hardest to reject of i. If they are not, no fewer of the largest are.
    """
    kept, rejected = 0, most + 1
    while rejected - kept > 1:
        size = (kept + rejected) // 2
        holds = (size * ordered[len(ordered) - size :] > np.arange(1, size + 1) * share).all()
        kept, rejected = (size, rejected) if holds else (kept, size)
    return kept


def _steps(p: np.ndarray, largest: int, share: float) -> np.ndarray:
    """Smallest u >= 1 with ``largest p <= u share``, at most m + 1; compared as written, without a rounded quotient."""
    scaled, most = largest * p, len(p) + 1
    steps = np.clip(np.ceil(np.minimum(scaled / share, most)), 1, most).astype(np.int64)
    steps += scaled > steps * share
    steps -= (steps > 1) & (scaled <= (steps - 1) * share)
    return np.minimum(steps, most)


def e_value_bounds(log_e_values: Any, alpha: float = 0.05) -> EValueBounds:
    r"""Bounds on the true discoveries in any set, from e-values: under any dependence and at any stopping time.

    Parameters
    ----------
    log_e_values : array
        Natural logarithms of the e-values of all hypotheses of one family, as `log_e_values` returns, -inf for the
        e-value 0; of any shape.
    alpha : float, default: 0.05
        Probability that any of the bounds is too large, at most.

    Returns
    -------
    EValueBounds
        ``bounds.among(mask)`` is the bound for a set. For e-values that are valid at any time, so are the bounds: one
        may sample until they are good enough.

    Raises
    ------
    ValueError
        If a value is NaN or +inf, or if `alpha` is no level.

    Notes
    -----
    Closed testing [1]_, where an intersection is rejected if the mean of its e-values is at least 1 / alpha. The mean
    of e-values is an e-value under any dependence [2]_. An intersection I is not rejected if and only if
    :math:`\sum_{j \in I} (\alpha e_j - 1) < 0`. Let D be the sum of :math:`1 - \alpha e_j` over all hypotheses with
    :math:`\alpha e_j < 1`, in the set or not. A set holds at least as many false nulls as it has hypotheses with
    :math:`\alpha e_j \ge 1` beyond the smallest of these whose sum of :math:`\alpha e_j - 1` is less than D.
    It is the exact bound of closed testing.

    All sums are exact sums of integers. Each e-value is rounded down to one, so that rounding makes no bound too large.

    References
    ----------
    .. [1] J. J. Goeman and A. Solari, "Multiple Testing for Exploratory Research", Statistical Science 26, 2011.
    .. [2] V. Vovk and R. Wang, "Confidence and Discoveries with E-values", Statistical Science 38, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import stats
    >>> bounds = stats.e_value_bounds(np.log([500.0, 100.0, 80.0, 0.5, 1.0]))
    >>> bounds.whole, bounds.among([0, 3])
    (3, 1)
    """
    _, logs = as_log_e_values(log_e_values)
    level = as_level(alpha, "alpha")
    most = max(logs.size, 1)  # the debt is at most m
    unit = 2.0 ** (BITS - most.bit_length())
    paid = np.exp(np.minimum(logs.ravel() + np.log(level), np.log(most + 1.0)))
    surplus = np.floor((paid - 1) * unit).astype(np.int64)
    debt = -int(surplus[surplus < 0].sum())
    return EValueBounds(logs.shape, level, np.minimum(surplus, debt), debt)
