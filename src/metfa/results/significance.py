"""Decisions: which features are significant, from the counts of their samples on either side of a threshold."""

from __future__ import annotations

import numpy as np

from metfa import stats
from metfa.stats.sequential import reciprocal_table

__all__ = ["ANY_TIME", "CORRECTIONS", "any_time_undecided", "marks_of"]

CORRECTIONS = (None, "bonferroni", "holm", "bh", "by", "e-bh")
ANY_TIME = (None, "bonferroni", "e-bh")  # those that hold at whatever number of samples one stopped


def marks_of(outcome: stats.MedianTestResult, alpha: float, correction: str | None) -> np.ndarray:
    r"""+1, -1 and 0, int8 (batch, \*features); each input's features are one family.

    `outcome` is of two-sided tests. Without a correction each side is tested at `alpha`. "e-bh" takes the reciprocals
    of e-values, both sides of all features: of a feature only the larger one can be rejected, and that is found at
    twice its reciprocal among half as many.
    """
    if correction is None:
        significant = outcome.pvalue <= 2 * alpha  # each side at alpha: the smaller tail is half of it
    else:
        flat = outcome.pvalue.reshape(len(outcome.pvalue), -1)
        method = "bh" if correction == "e-bh" else correction
        significant = (stats.correct(flat, method, axis=1) <= alpha).reshape(outcome.pvalue.shape)
    return (outcome.sign * significant).astype(np.int8)


def any_time_undecided(
    above: np.ndarray, below: np.ndarray, n: int, alpha: float, correction: str | None
) -> np.ndarray:
    """Share of each input's features, (batch,), that `marks_of` leaves undecided by e-values of the first `n` samples.

    Decisions go by the larger count alone, which takes n + 1 values: a histogram is all that a look needs.
    """
    larger = np.maximum(above, below).reshape(len(above), -1)
    pvalues = np.minimum(1, 2 * reciprocal_table(n))
    shares = []
    for row in larger:
        as_large = np.bincount(row, minlength=n + 1)[::-1].cumsum()[::-1]  # features that would be rejected with it
        if correction is None:
            rejected = pvalues <= 2 * alpha
        elif correction == "bonferroni":
            rejected = pvalues * row.size <= alpha
        else:
            rejected = (as_large > 0) & (pvalues * (row.size / np.maximum(as_large, 1)) <= alpha)
        decided = as_large[rejected.argmax()] if rejected.any() else 0
        shares.append(1 - decided / row.size)
    return np.array(shares)
