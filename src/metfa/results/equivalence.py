"""Whether differences are larger than some number, or are shown to be smaller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.validation import check_number
from metfa.results.corrections import BOTH, E_VALUES, STATEMENTS, check_correction
from metfa.results.decisions import TooFewSamplesError
from metfa.results.families import histograms, least_counts, samples_needed
from metfa.results.terms import Terms
from metfa.results.thresholds import sides

if TYPE_CHECKING:
    from metfa.results.samples import Samples

__all__ = ["changed", "unchanged"]


def changed(sample: Samples, delta: Any, alpha: float | None, correction: str | None) -> np.ndarray:
    """See `AttributionSample.changed`."""
    delta, usual = check_number(delta, "delta"), "closed-e-bh" if sample.any_time else "holm"
    terms = _terms(sample, alpha, usual if correction is None else correction, BOTH)
    any_time = _needed(sample, terms, sample.values[0].size)
    above, _ = _sides(sample, delta)
    _, below = _sides(sample, -delta)
    up, down = least_counts(*histograms(above, below, sample.n_samples), terms, any_time=any_time)
    return np.subtract(above >= up, below >= down, dtype=np.int8)


def unchanged(sample: Samples, delta: Any, alpha: float | None, correction: str | None) -> np.ndarray:
    """See `AttributionSample.unchanged`."""
    delta = check_number(delta, "delta", above=0)
    terms = _terms(sample, alpha, correction, STATEMENTS)
    any_time = _needed(sample, terms, sample.n_features)
    _, below = _sides(sample, delta)
    above, _ = _sides(sample, -delta)
    fewer = np.minimum(above, below)  # the larger p-value of both tests, and the smaller e-value
    none = np.zeros_like(fewer[0])
    least = [least_counts(*histograms(row, none, sample.n_samples), terms, any_time=any_time)[0] for row in fewer]
    return fewer >= np.reshape(least, (-1, *[1] * len(sample.feature_shape)))


def _terms(sample: Samples, alpha: float | None, correction: str | None, families: str) -> Terms:
    if sample.pair is None:
        raise ValueError(
            "`delta` is for differences, and these are scores: write `metfa.compare(before, after)`, or a threshold of "
            "`significance_map`"
        )
    known = check_correction(correction, any_time=sample.any_time)
    return Terms(0.0, 0.05 if alpha is None else alpha, known, families=families)


def _needed(sample: Samples, terms: Terms, n_features: int) -> bool:
    """Whether e-values decide; raises if so few samples could show nothing."""
    any_time = sample.any_time or terms.correction in E_VALUES
    needed = samples_needed(terms, n_features, any_time=any_time)
    if sample.n_samples < needed:
        over = f"{terms.correction} over {n_features} differences" if terms.correction else "uncorrected"
        both = ", both sides together" if terms.together else ""
        raise TooFewSamplesError(
            f"too few samples for `alpha`={terms.alpha} ({over}{both}): got {sample.n_samples}, at least {needed} are "
            "needed for anything to become significant"
        )
    return any_time


def _sides(sample: Samples, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of samples above and below; none of inputs whose samples are one explanation N times."""
    above, below = sides(sample.values, np.array([threshold]), sample.unit)
    moved = ~sample.unmoved.reshape(-1, *[1] * len(sample.feature_shape))
    return above * moved, below * moved
