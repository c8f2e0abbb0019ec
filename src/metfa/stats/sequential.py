"""The sign test at any time: e-values of the counts. One may look at them after every sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from metfa._arrays import from_host, namespace, real_dtype
from metfa._base.validation import as_list, check_number, positive_int, shown
from metfa.stats._incomplete_beta import log_beta_ratio
from metfa.stats._intervals import ConfidenceInterval, median_interval
from metfa.stats._ranks import Ranks, together
from metfa.stats.counts import count_sides, looked_up
from metfa.stats.sign_tests import SignTestResult
from metfa.stats.validation import as_alternative, as_counts, as_level, as_rows

__all__ = [
    "PRIOR",
    "SequentialTestResult",
    "confidence_sequence",
    "fewest_reaching",
    "log_e_at",
    "log_e_table",
    "log_e_values",
    "reciprocal_table",
    "result_of",
    "sequence_ranks",
    "sequential_test",
]

PRIOR = (0.5, 0.5)
MOST_SAMPLES = 1_000_000

Prior = tuple[float, float]


@dataclass(frozen=True, eq=False)
class SequentialTestResult(SignTestResult):
    """Result of `sequential_test`: as of `sign_test`, but the p-values hold at any time, and e-values are added.

    Attributes
    ----------
    n, above, below, pvalue, alternative, sign
        As for `SignTestResult`.
    log_e_above, log_e_below : array of float
        Natural logarithms of the e-values against V <= h (they speak for a median above h) and against V >= h.
    """

    log_e_above: Any = None
    log_e_below: Any = None


def log_e_values(counts: Any, n: int, *, probability: float = 0.5, prior: Prior = PRIOR) -> Any:
    r"""Natural logarithms of e-values against "a sample is counted with probability at most p0".

    S of n samples are counted. The alternative is a mixture: the probability q that a sample is counted has a
    Beta(a, b) law Q cut to (p0, 1],

    .. math:: E_n = \int \left(\frac{q}{p_0}\right)^S \left(\frac{1-q}{1-p_0}\right)^{n-S} dQ(q).

    Under the hypothesis, :math:`E_n` is a non-negative supermartingale that starts at 1 [1]_: its mean is at most 1
    at any stopping time. The probability that it ever reaches :math:`1 / \alpha` is at most :math:`\alpha` (Ville's
    inequality [2]_).

    Parameters
    ----------
    counts : array of int
        Samples counted, S, in 0..n.
    n : int
        Number of samples, at most 1,000,000.
    probability : float, default: 0.5
        p0.
    prior : (float, float), default: (0.5, 0.5)
        a and b. With the default, six samples that all agree reach an e-value of 20 (E = 28.8).

    Returns
    -------
    array of float
        :math:`\log E_n`, of the shape and library of `counts`. It is a logarithm because e-values of many samples are
        larger than any float.

    References
    ----------
    .. [1] A. Ramdas, P. Grünwald, V. Vovk and G. Shafer, "Game-Theoretic Statistics and Safe Anytime-Valid Inference",
       Statistical Science 38, 2023.
    .. [2] J. Ville, "Étude critique de la notion de collectif", 1939.

    Examples
    --------
    >>> from metfa import stats
    >>> stats.log_e_values([5, 8, 10], 10).round(3)
    array([-1.402,  1.183,  5.888])
    """
    n = _sample_size(n, least=0)
    probability = as_level(probability, "probability")
    counts, host = as_counts(counts, n)
    prior = _checked_prior(prior)
    if host.size > n:
        return looked_up(log_e_table(n, float(probability), prior), counts)
    return from_host(log_e_at(host.astype(np.float64), n, probability, prior), counts, real_dtype(counts))


@lru_cache(maxsize=32)
def log_e_table(n: int, probability: float = 0.5, prior: Prior = PRIOR) -> np.ndarray:
    """`log_e_values` of all counts 0, ..., n, ascending; read-only."""
    table = log_e_at(np.arange(n + 1.0), n, probability, prior)
    table.flags.writeable = False
    return table


@lru_cache(maxsize=32)
def reciprocal_table(n: int, prior: Prior = PRIOR) -> np.ndarray:
    """Reciprocals of the e-values of all counts 0, ..., n, at most 1; read-only. They replace the tails of the test."""
    table = np.exp(-np.maximum(log_e_table(n, 0.5, prior), 0))
    table.flags.writeable = False
    return table


def log_e_at(counts: np.ndarray, n: int, probability: Any, prior: Prior = PRIOR) -> np.ndarray:
    """`log_e_values` of floats on the host, with one `probability` for all counts or one for each."""
    a, b = prior
    below, above = 1 - np.asarray(probability), probability
    # The ratio of two tails of Beta laws, written in 1 - q. The powers of p0 that they omit cancel with the null's.
    mixed = log_beta_ratio(below, n - counts + b, counts + a, rest=above)
    return mixed - log_beta_ratio(below, b, a, rest=above)


def sequential_test(
    samples: Any, threshold: Any, *, alternative: str = "two-sided", prior: Prior = PRIOR, axis: int = 0
) -> SequentialTestResult:
    """Sign test that holds at any time: is the median of each feature above or below a threshold?

    One may look at it after every sample and stop because of what was seen. Used in that way, the plain `sign_test`
    is wrong in a third of the cases (one-sided, at level .05, after each of 1,000 samples).

    Parameters
    ----------
    samples, threshold, axis
        As for `sign_test`; `samples` holds the samples up to now.
    alternative : {"two-sided", "greater", "less"}
        As for `sign_test`.
    prior : (float, float)
        As for `log_e_values`.

    Returns
    -------
    SequentialTestResult
        The p-value is the reciprocal of the e-value, at most 1. The e-value is against V <= h for "greater" and
        against V >= h for "less"; "two-sided" takes twice the reciprocal of the larger of the two.

    Raises
    ------
    ValueError
        As for `sign_test`.

    Notes
    -----
    Under V <= h, a sample lies strictly above h with probability at most 1/2, with ties or without. The threshold
    need not be a fixed number, however it was found: where V <= h, no more samples lie above h than above V. The
    e-value at h is therefore at most the e-value at V, which is valid at any time.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import stats
    >>> result = stats.sequential_test(np.array([[0.3, -1.0]] * 8), 0)
    >>> result.log_e_above.round(2), result.pvalue.round(4)
    (array([ 4.61, -2.64]), array([0.0199, 0.0199]))
    """
    alternative = as_alternative(alternative)
    rows, n = as_rows(samples, axis)
    _sample_size(n)
    above, below = count_sides(rows, n, threshold)
    return result_of(above, below, n, alternative, _checked_prior(prior))


def result_of(above: Any, below: Any, n: int, alternative: str, prior: Prior = PRIOR) -> SequentialTestResult:
    """`sequential_test` of counts."""
    log_e_above, log_e_below = (looked_up(log_e_table(n, 0.5, prior), counts) for counts in (above, below))
    counts = {"greater": above, "less": below, "two-sided": namespace(above).maximum(above, below)}[alternative]
    reciprocals = reciprocal_table(n, prior)
    pvalue = looked_up(np.minimum(1, 2 * reciprocals) if alternative == "two-sided" else reciprocals, counts)
    return SequentialTestResult(n, above, below, pvalue, alternative, log_e_above, log_e_below)


def sequence_ranks(n: int, confidence_level: float = 0.95, *, prior: Prior = PRIOR, n_features: int = 1) -> Ranks:
    """Ranks of an interval for the median that holds at all numbers of samples at once.

    The interval holds the thresholds that neither of the two e-values of `sequential_test` rejects at half of the
    error. With the given probability, these intervals cover the median at every n, so also at the n at which sampling
    stopped [1]_.

    Parameters
    ----------
    n : int
        Number of samples.
    confidence_level : float, default: 0.95
        Least probability that all intervals, n = 1, 2, ..., cover the median.
    prior : (float, float)
        As for `log_e_values`.
    n_features : int, default: 1
        As for `median_ranks`.

    Returns
    -------
    Ranks
        Ranks for `median_interval` and `smoothed_median`; ``confidence_level`` is the level asked for.

    Raises
    ------
    ValueError
        If `n` samples are too few; the message names the smallest number.

    References
    ----------
    .. [1] S. R. Howard, A. Ramdas, J. McAuliffe and J. Sekhon, "Time-uniform, Nonparametric, Nonasymptotic Confidence
       Sequences", Annals of Statistics 49, 2021.

    Examples
    --------
    >>> from metfa import stats
    >>> stats.sequence_ranks(20), stats.median_ranks(20).low
    (Ranks(n=20, low=4, high=17, first=4, last=17, confidence_level=0.95, sequential=True), 6)
    """
    n, level, prior = _sample_size(n), as_level(confidence_level, "confidence_level"), _checked_prior(prior)
    needed = 2 * positive_int(n_features, "n_features") / (1 - level)  # of an e-value
    reaching = int(np.searchsorted(log_e_table(n, 0.5, prior), math.log(needed)))
    if reaching > n:
        raise ValueError(
            f"too few samples for `confidence_level`={level}{together(n_features)} at any time: got {n}, at least "
            f"{fewest_reaching(needed, prior)} are needed"
        )
    low = n - reaching + 1
    return Ranks(n, low=low, high=reaching, first=low, last=reaching, confidence_level=level, sequential=True)


@lru_cache(maxsize=64)
def fewest_reaching(e_value: float, prior: Prior = PRIOR, probability: float = 0.5) -> int:
    """Smallest number of samples whose e-value can reach `e_value`, which needs all of them on one side."""
    low, high = 0, 1
    while log_e_at(np.array([float(high)]), high, probability, prior)[0] < math.log(e_value):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        reached = log_e_at(np.array([float(middle)]), middle, probability, prior)[0] >= math.log(e_value)
        low, high = (low, middle) if reached else (middle, high)
    return high


def confidence_sequence(
    samples: Any,
    looks: Any,
    confidence_level: float = 0.95,
    *,
    prior: Prior = PRIOR,
    axis: int = 0,
) -> ConfidenceInterval:
    """Interval for each feature's median from several looks: the intersection of the intervals of all looks.

    Parameters
    ----------
    samples : array
        As for `median_interval`, in the order in which they were drawn.
    looks : sequence of int
        How many samples there were at each look; a look at k takes the first k samples.
    confidence_level, prior
        As for `sequence_ranks`.
    axis : int
        As for `median_interval`.

    Returns
    -------
    ConfidenceInterval
        Never wider than the interval of the last look alone. With at most the probability of an error, the intervals
        of a feature have nothing in common; then ``low > high``.

    Raises
    ------
    TypeError
        If `looks` is a single number.
    ValueError
        If there are no looks, or if a look is at more samples than there are or at too few for an interval.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import stats
    >>> interval = stats.confidence_sequence(np.arange(20.0), [10, 15, 20])
    >>> float(interval.low), float(interval.high)
    (3.0, 9.0)
    """
    rows, n = as_rows(samples, axis)
    looks = as_list(looks, "looks", "a sequence of numbers of samples")
    found: ConfidenceInterval | None = None
    for look in looks:
        if positive_int(look, "looks") > n:
            raise ValueError(f"`looks` must not exceed the number of samples, {n}, got {look}")
        ranks = sequence_ranks(look, confidence_level, prior=prior)
        interval = median_interval(rows[..., :look], ranks=ranks, axis=-1)
        if found is not None:
            xp = namespace(interval.low)
            interval = ConfidenceInterval(
                xp.maximum(found.low, interval.low), xp.minimum(found.high, interval.high), interval.confidence_level
            )
        found = interval
    if found is None:
        raise ValueError("`looks` is empty: give the numbers of samples at which you looked")
    return found


def _sample_size(n: Any, least: int = 1) -> int:
    return positive_int(n, "n", least, MOST_SAMPLES)


def _checked_prior(prior: Any) -> Prior:
    if not isinstance(prior, tuple | list) or len(prior) != 2:
        raise TypeError(f"`prior` must be a pair (a, b) of a Beta law, got {shown(prior)}")
    first, second = (check_number(value, "prior", above=0) for value in prior)
    return first, second
