"""Families of tests: from which counts on a correction marks features, in histograms of the counts of all features.

The p-value or e-value of a test is a function of a count, 0 to n, so that n + 1 numbers of features decide a map.
Marks, looks during sampling and plans all ask here.
"""

from __future__ import annotations

import math

import numpy as np

from metfa import stats
from metfa.results.corrections import E_VALUES, check_correction, family_wise
from metfa.results.terms import Terms
from metfa.stats.closed_fdr import first_rejected
from metfa.stats.sequential import fewest_reaching, log_e_table, reciprocal_table
from metfa.stats.sign_null import upper_tail_table

__all__ = ["capped_e_values", "histograms", "least_counts", "samples_needed", "undecided_share"]


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
        Whether the decision must hold whenever sampling stops. Corrections of e-values always do.
    """
    n = len(up) - 1
    alpha, correction = terms.alpha, terms.in_effect
    sides = 2 if terms.together else 1
    if any_time or correction in E_VALUES:
        pvalues = np.minimum(1, sides * reciprocal_table(n))
    else:
        pvalues = np.minimum(1, sides * upper_tail_table(n))
    families = [up, down]
    if terms.together:  # by two-sided p-values of the larger counts; only those above n / 2 can be significant
        larger = np.where(np.arange(n + 1) > n / 2, up + down, 0)
        larger[0] += up.sum() - larger.sum()
        families = [larger]
    least = [_least(features, pvalues, alpha, correction) for features in families]
    if correction == "closed-e-bh":
        e_values = capped_e_values(n) / sides
        least = [_least_closed(features, e_values, alpha, most) for features, most in zip(families, least, strict=True)]
    return least[0], least[-1]


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


def capped_e_values(n: int) -> np.ndarray:
    """E-values of all counts 0, ..., n; those above 1e300 are 1e300, which decides the same."""
    return np.exp(np.minimum(log_e_table(n), math.log(1e300)))


def _least_closed(features: np.ndarray, e_values: np.ndarray, alpha: float, most: int) -> int:
    """Least count that closed e-BH rejects, at most that of e-BH, `most`; arguments as for `_least`."""
    some = np.flatnonzero(features)
    of_e_bh = int(np.searchsorted(some, most))
    least = int(np.searchsorted(e_values[some], 1, side="right"))
    first = first_rejected(alpha * e_values[some], features[some], least, of_e_bh)
    return int(some[first]) if first < of_e_bh else most


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
    if any_time or correction in E_VALUES:
        return fewest_reaching(n_tests / alpha)  # e-BH, if it rejects one side of all features: E >= sides / alpha
    factor = _harmonic(n_features) if correction == "by" else 1.0
    return stats.min_samples(alpha / factor, "greater", n_tests)


def _harmonic(m: int) -> float:
    return float((1 / np.arange(1, m + 1)).sum())
