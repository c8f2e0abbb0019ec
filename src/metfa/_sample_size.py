"""How many samples a question needs: the smallest N for a level, a correction, an interval."""

from __future__ import annotations

import numpy as np

from metfa import stats
from metfa.stats._multiplicity import check_method
from metfa.stats._validation import as_level

__all__ = ["TooFewSamplesError", "check_alpha", "samples_for_interval", "samples_needed", "too_few_for_interval"]


class TooFewSamplesError(ValueError):
    """So few samples that no feature could become significant; the message names the smallest number."""


def check_alpha(alpha: float) -> None:
    """Raise unless `alpha` is a level for decisions, in (0, 0.5)."""
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.floating):
        raise TypeError(f"`alpha` must be a number, got {type(alpha).__name__}: {alpha!r}")
    if not 0 < alpha < 0.5:
        raise ValueError(f"`alpha` must lie between 0 and 0.5, got {alpha}; 0.05 is usual")


def samples_needed(alpha: float, correction: str | None, n_features: int) -> int:
    """Smallest N at which any feature could become significant."""
    if correction is None:
        return stats.min_samples(alpha, "greater")
    check_method(correction, "correction")
    n_tests = n_features if correction in ("bonferroni", "holm") else 1
    factor = float((1 / np.arange(1, n_features + 1)).sum()) if correction == "by" else 1.0
    return stats.min_samples(alpha / factor, "two-sided", n_tests)


def samples_for_interval(confidence_level: float) -> int:
    """Smallest N with an interval of that level."""
    return stats.min_samples(1 - as_level(confidence_level, "confidence_level"))


def too_few_for_interval(n_samples: int, confidence_level: float) -> str:
    """What is said where an interval of that level would need more samples."""
    needed = samples_for_interval(confidence_level)
    return f"{n_samples} samples are too few, {100 * confidence_level:.6g}% needs {needed}"
