"""Ranks of the order statistics that bound the median or are averaged, and how many samples they need."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from metfa._base.validation import positive_int
from metfa.stats.sign_null import MOST_SAMPLES, fewest_samples, largest_count
from metfa.stats.validation import as_alternative, as_level

__all__ = ["Ranks", "median_ranks", "min_samples", "paper_ranks", "together"]


@dataclass(frozen=True)
class Ranks:
    """Ranks, 1-based and ascending, of the order statistics used for `n` samples.

    Attributes
    ----------
    n : int
        Number of samples.
    low, high : int
        Ranks of the two ends of the interval for the median.
    first, last : int
        First and last rank of the order statistics whose mean is the smoothed value, both included.
    confidence_level : float
        Exact probability that the interval covers the median of a continuous law; a lower bound for any other law.
    sequential : bool
        True if the level holds for all numbers of samples at once, so that sampling may stop because of what was seen.
        False if it holds for an `n` that was fixed beforehand.
    """

    n: int
    low: int
    high: int
    first: int
    last: int
    confidence_level: float
    sequential: bool = False

    def __post_init__(self) -> None:
        for lower, upper in (("low", "high"), ("first", "last")):
            a, b = getattr(self, lower), getattr(self, upper)
            if not 1 <= a <= b <= self.n:
                raise ValueError(
                    f"`{lower}` and `{upper}` must satisfy 1 <= {lower} <= {upper} <= {self.n}, got {a}, {b}"
                )


def median_ranks(n: int, confidence_level: float = 0.95, *, n_features: int = 1) -> Ranks:
    """Ranks of the shortest symmetric interval that covers the median at a given level.

    With B ~ Binomial(n, 1/2) and k the largest integer for which ``P(B <= k) <= (1 - confidence_level) / (2 m)``, for m
    features together, the interval runs from order statistic k + 1 to order statistic n - k. The smoothed value is the
    mean of these two and all between them.

    Parameters
    ----------
    n : int
        Number of samples.
    confidence_level : float, default: 0.95
        Least probability that the interval covers the median; of several features, that all of theirs do.
    n_features : int, default: 1
        Number m of features whose intervals must cover together, whatever their dependence (Bonferroni's inequality).

    Returns
    -------
    Ranks
        Its ``confidence_level`` is the level that is reached, ``1 - 2 m P(B <= k)``: for one feature the exact one.

    Raises
    ------
    ValueError
        If `n` samples can't reach `confidence_level`; the message names the smallest number that can.

    Notes
    -----
    All comparisons are made on exact integers. The interval is the set of values that the two-sided sign test does
    not reject [1]_. The smoothed value is the one of the paper [2]_, with the ranks of its released code; the paper's
    text drops one more sample from the top than from the bottom (see `paper_ranks`).

    References
    ----------
    .. [1] H. A. David and H. N. Nagaraja, "Order Statistics", 3rd edition, Wiley, 2003, section 7.1.
    .. [2] Y. Gan et al., "'Is your explanation stable?': A Robustness Evaluation Framework for Feature Attribution",
       CCS 2022, :doi:`10.1145/3548606.3559392`.

    Examples
    --------
    >>> from metfa import stats
    >>> stats.median_ranks(10)
    Ranks(n=10, low=2, high=9, first=2, last=9, confidence_level=0.978515625, sequential=False)
    >>> stats.median_ranks(50, n_features=224 * 224).low, stats.median_ranks(50).low
    (8, 18)
    """
    n_features = positive_int(n_features, "n_features")
    n, k, tail = _trim(n, confidence_level, n_features)
    level = ((1 << n) - 2 * n_features * tail) / (1 << n)
    return Ranks(n, low=k + 1, high=n - k, first=k + 1, last=n - k, confidence_level=level)


def paper_ranks(n: int, confidence_level: float = 0.95) -> Ranks:
    """Ranks of the paper's text, to reproduce the paper.

    With k as in `median_ranks`, the interval runs from order statistic k to n - k, and the smoothed value is the mean
    of k + 1 to n - k - 1. This drops one more sample from the top than from the bottom: for a standard normal law the
    mean is biased by -0.143 at n = 10 and by -0.026 at n = 50. `median_ranks` has no such bias.

    Parameters
    ----------
    n : int
        Number of samples.
    confidence_level : float, default: 0.95
        Level from which k is computed.

    Returns
    -------
    Ranks
        Its ``confidence_level`` is the exact coverage of these ranks, ``1 - P(B <= k - 1) - P(B <= k)``.

    Raises
    ------
    ValueError
        If k is 0 (the text then asks for an order statistic of rank 0), or if `n` is too small for any k.

    References
    ----------
    .. [1] Y. Gan et al., "'Is your explanation stable?': A Robustness Evaluation Framework for Feature Attribution",
       CCS 2022, :doi:`10.1145/3548606.3559392`.

    Examples
    --------
    >>> from metfa import stats
    >>> ranks = stats.paper_ranks(10)
    >>> ranks.low, ranks.high, ranks.first, ranks.last
    (1, 9, 2, 8)
    """
    n, k, tail = _trim(n, confidence_level)
    if k == 0:
        raise ValueError(
            f"the paper's ranks don't exist for `n`={n} at `confidence_level`={confidence_level}: k = 0, and the "
            f"interval would start at the order statistic of rank 0; write median_ranks({n}, {confidence_level})"
        )
    level = ((1 << n) - 2 * tail + math.comb(n, k)) / (1 << n)
    return Ranks(n, low=k, high=n - k, first=k + 1, last=n - k - 1, confidence_level=level)


def min_samples(alpha: float = 0.05, alternative: str = "two-sided", n_tests: int = 1) -> int:
    """Smallest number of samples with which the sign test can reject at all.

    The smallest p-value of n samples is ``2**-n`` one-sided and ``2**(1 - n)`` two-sided. It is compared with
    ``alpha / n_tests`` in exact arithmetic.

    Parameters
    ----------
    alpha : float, default: 0.05
        Level of the test.
    alternative : {"two-sided", "greater", "less"}
        As in `sign_test`.
    n_tests : int, default: 1
        Number of tests that share `alpha` (Bonferroni's correction).

    Returns
    -------
    int
        The smallest n.

    Examples
    --------
    >>> from metfa import stats
    >>> stats.min_samples(alternative="greater"), stats.min_samples(), stats.min_samples(n_tests=224 * 224)
    (5, 6, 21)
    """
    share = Fraction(as_level(alpha, "alpha")) / positive_int(n_tests, "n_tests")
    return fewest_samples(share / 2 if as_alternative(alternative) == "two-sided" else share)


def together(n_features: int) -> str:
    """End of "a level", where it is for several features."""
    return f" of {n_features} features together" if n_features > 1 else ""


def _trim(n: Any, confidence_level: Any, n_features: int = 1) -> tuple[int, int, int]:
    """`n`, the number k of samples to drop at either end, and ``2**n * P(B <= k)``."""
    n = positive_int(n, "n", maximum=MOST_SAMPLES)  # beyond it, exact ranks take minutes
    level = as_level(confidence_level, "confidence_level")
    miss = (1 - Fraction(level)) / (2 * n_features)
    k, tail = largest_count(n, miss)
    if k < 0:
        reached = float(most := 1 - Fraction(2 * n_features, 1 << n))
        reached = reached if reached <= most else math.nextafter(reached, 0)
        best = f", or write confidence_level={reached}, the most that {n} can reach" if reached > 0 else ""
        raise ValueError(
            f"too few samples for `confidence_level`={level}{together(n_features)}: got {n}, at least "
            f"{fewest_samples(miss)} are needed{best}"
        )
    return n, k, tail
