"""How many samples a question needs: the smallest N for a level, a correction, an interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa import stats
from metfa._base.validation import did_you_mean
from metfa.results.significance import ANY_TIME, CORRECTIONS
from metfa.stats.sequential import fewest_reaching
from metfa.stats.validation import as_level

__all__ = [
    "TooFewSamplesError",
    "check_alpha",
    "check_correction",
    "samples_for_interval",
    "samples_needed",
]


class TooFewSamplesError(ValueError):
    """So few samples that no feature could become significant; the message names the smallest number."""


def check_alpha(alpha: float) -> None:
    """Raise unless `alpha` is a level for decisions, in (0, 0.5)."""
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.floating):
        raise TypeError(f"`alpha` must be a number, got {type(alpha).__name__}: {alpha!r}")
    if not 0 < alpha < 0.5:
        raise ValueError(f"`alpha` must lie between 0 and 0.5, got {alpha}; 0.05 is usual")


def check_correction(correction: Any, *, any_time: bool = False) -> None:
    """Raise unless there is such a correction; with `any_time`, one that holds at whatever N one stopped."""
    if not isinstance(correction, str | None):
        raise TypeError(
            f"`correction` must be a string or None, got {correction!r} of type {type(correction).__name__}"
        )
    if correction not in CORRECTIONS:
        names = [name for name in CORRECTIONS if name]
        raise ValueError(
            f"`correction` must be None or one of {', '.join(map(repr, names))}, got {correction!r}"
            f"{did_you_mean(str(correction), names)}"
        )
    if any_time and correction not in ANY_TIME:
        raise ValueError(
            f"`correction` must hold at whatever number of samples one stopped, and {correction!r} is for a number "
            "that was fixed beforehand: write 'e-bh' (false discovery rate, any dependence), 'bonferroni' or None"
        )


def samples_needed(alpha: float, correction: str | None, n_features: int, *, any_time: bool = False) -> int:
    """Smallest N at which any feature could become significant."""
    check_correction(correction, any_time=any_time)
    if any_time or correction == "e-bh":
        # One side alone: E >= 1 / alpha. Of all features together, where all are on one side, half of the tests: 2.
        tests = {None: 1, "e-bh": 2, "bonferroni": 2 * n_features}[correction]
        return fewest_reaching(tests / alpha)
    if correction is None:
        return stats.min_samples(alpha, "greater")
    n_tests = n_features if correction in ("bonferroni", "holm") else 1
    factor = float((1 / np.arange(1, n_features + 1)).sum()) if correction == "by" else 1.0
    return stats.min_samples(alpha / factor, "two-sided", n_tests)


def samples_for_interval(confidence_level: float, *, any_time: bool = False) -> int:
    """Smallest N with an interval of that level; with `any_time`, one that holds whenever one stops."""
    miss = 1 - as_level(confidence_level, "confidence_level")
    return fewest_reaching(2 / miss) if any_time else stats.min_samples(miss)
