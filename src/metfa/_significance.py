"""Decisions: which features are significant, from the counts of their samples on either side of a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa import stats
from metfa.stats._sequential import result_of

__all__ = ["ANY_TIME", "CORRECTIONS", "any_time_marks", "marks_of"]

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


def any_time_marks(above: Any, below: Any, n: int, alpha: float, correction: str | None) -> np.ndarray:
    """Marks from counts of the first `n` samples, that hold whenever one stops."""
    return marks_of(result_of(above, below, n, "two-sided"), alpha, correction)
