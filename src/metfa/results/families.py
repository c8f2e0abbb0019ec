"""Families of tests: from which counts on a correction marks features, in histograms of the counts of all features.

The p-value or e-value of a test is a function of a count, 0 to n, so that n + 1 numbers of features decide a map.
Marks, looks during sampling and plans all ask here.
"""

from __future__ import annotations

import numpy as np

from metfa import stats
from metfa.results.corrections import check_correction, family_wise
from metfa.results.terms import Terms
from metfa.stats.sequential import fewest_reaching, reciprocal_table
from metfa.stats.sign_null import upper_tail_table

__all__ = ["histograms", "least_counts", "samples_needed", "undecided_share"]


def histograms(above: np.ndarray, below: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """How many features of one input have 0, ..., n samples above, and how many have 0, ..., n below, (n + 1,) each."""
    up, down = (np.bincount(counts.ravel(), minlength=n + 1) for counts in (above, below))
    return up, down


def least_counts(up: np.ndarray, down: np.ndarray, terms: Terms, *, any_time: bool) -> tuple[int, int]:
    """From how many samples above, and from how many below, a feature of an input is marked; n + 1 where none is.

    Parameters
    ----------
    up, down : ndarray, (n + 1,)
        `histograms`; may be expected numbers.
    terms : Terms
        Alpha, correction and families.
    any_time : bool
        Whether the decision must hold whenever sampling stops. "e-bh" always does.
    """
    n = len(up) - 1
    alpha, correction = terms.alpha, terms.correction
    pvalues = reciprocal_table(n) if any_time or correction == "e-bh" else upper_tail_table(n)
    if terms.together:  # by two-sided p-values of the larger counts; only those above n / 2 can be significant
        larger = np.where(np.arange(n + 1) > n / 2, up + down, 0)
        larger[0] += up.sum() - larger.sum()
        least = _least(larger, np.minimum(1, 2 * pvalues), alpha, correction)
        return least, least
    return _least(up, pvalues, alpha, correction), _least(down, pvalues, alpha, correction)


def _least(features: np.ndarray, pvalues: np.ndarray, alpha: float, correction: str | None) -> int:
    """Least count that is rejected, in one family: `features` (n + 1,) have the counts, which have the `pvalues`.

    It is `stats.correct`, step by step, for features in the order of their counts.
    """
    m = features.sum()
    as_large = features[::-1].cumsum()[::-1]  # features that would be rejected with it
    if correction is None:
        rejected = pvalues <= alpha
    elif correction == "bonferroni":
        rejected = pvalues * m <= alpha
    elif correction == "holm":
        holds = pvalues * np.maximum(m - np.append(as_large[1:], 0), 1) <= alpha
        rejected = np.logical_and.accumulate(holds[::-1])[::-1]
    else:
        factor = _harmonic(round(m)) if correction == "by" else 1.0
        rejected = (as_large > 0) & (pvalues * (m / np.maximum(as_large, 1e-12)) * factor <= alpha)
    return int(rejected.argmax()) if rejected.any() else len(features)


def undecided_share(up: np.ndarray, down: np.ndarray, terms: Terms, *, any_time: bool) -> float:
    """Share of an input's features that are marked on neither side; arguments as for `least_counts`."""
    of_up, of_down = least_counts(up, down, terms, any_time=any_time)
    m = up.sum()
    return float((m - (up[of_up:].sum() + down[of_down:].sum())) / m)  # one rounding: 3 of 10 is 0.3


def samples_needed(terms: Terms, n_features: int, *, any_time: bool = False) -> int:
    """Smallest N at which any feature could become significant; of the terms, alpha, correction and families count."""
    alpha, correction = terms.alpha, check_correction(terms.correction, any_time=any_time)
    sides = 2 if terms.together else 1
    n_tests = sides * (n_features if family_wise(correction) else 1)
    if any_time or correction == "e-bh":
        return fewest_reaching(n_tests / alpha)  # e-BH, if it rejects one side of all features: E >= sides / alpha
    factor = _harmonic(n_features) if correction == "by" else 1.0
    return stats.min_samples(alpha / factor, "greater", n_tests)


def _harmonic(m: int) -> float:
    return float((1 / np.arange(1, m + 1)).sum())
