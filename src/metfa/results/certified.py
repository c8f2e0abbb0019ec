"""What Gaussian noise promises of a sample's medians where the input is changed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa import stats
from metfa._base.validation import check_number
from metfa.results.decisions import decided, terms_of_until
from metfa.results.sample_size import check_correction

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample

__all__ = ["CORRECTIONS", "certified", "noise_deviation", "ranks_within"]

CORRECTIONS = (None, "bonferroni", "bh", "e-bh")  # whose levels of the bounds are known


def noise_deviation(sample: AttributionSample) -> float:
    """Standard deviation of the Gaussian noise that a sample was made under; ValueError for any other noise."""
    deviation = sample.provenance.get("gaussian_std")
    if type(deviation) is not float or not (math.isfinite(deviation) and deviation > 0):
        raise ValueError(
            "a certificate needs Gaussian noise with one standard deviation, such as "
            f"`metfa.noise.Gaussian(0.1, bounds=(0, 1))`, but the samples are under {sample.provenance.get('noise')}"
        )
    return deviation


def certified(
    sample: AttributionSample, threshold: Any, alpha: float, correction: str | None, split: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Radii, see `AttributionSample.certified_radius`, and the marks that they are of."""
    deviation = noise_deviation(sample)
    check_correction(correction, any_time=sample.any_time)
    if correction not in CORRECTIONS:
        raise ValueError(
            f"`correction` must be {', '.join(map(repr, CORRECTIONS))} for a certificate, got {correction!r}"
        )
    if threshold is None:
        fixed = terms_of_until(sample)
        if fixed is None:
            raise ValueError(
                "`threshold` must be a number that was fixed before the samples, or a rule with `split=`, got None"
            )
        if split is not None:
            raise ValueError(f"`split` goes with a `threshold`; None is that of `until`, got `split`={split}")
        threshold, split = fixed
    if callable(threshold) and not split:
        raise ValueError(
            "`threshold` must not depend on the samples that are tested, or it would move with the input: write a "
            "number, or `split=10` so that the first ten samples choose it"
        )
    marks, outcome, *_ = decided(sample, threshold, alpha, correction, split)
    counts = np.where(marks > 0, outcome.above, outcome.below)
    found = np.zeros(marks.shape)
    for row, level in enumerate(_levels(marks, alpha, correction, sample.n_features)):
        marked = marks[row] != 0
        found[row][marked] = deviation * stats.certified_radius(
            counts[row][marked], outcome.n, level, sequential=sample.any_time or correction == "e-bh"
        )
    return found, marks


def _levels(marks: np.ndarray, alpha: float, correction: str | None, n_features: int) -> list[float]:
    """Level of each input's bounds: of those selected, r of m, the r-th share (Benjamini and Yekutieli 2005)."""
    if correction is None:
        return [alpha] * len(marks)
    share = alpha / (2 * n_features)
    if correction == "bonferroni":
        return [share] * len(marks)
    return [share * max(int(np.count_nonzero(row)), 1) for row in marks]


def ranks_within(sample: AttributionSample, radius: float, confidence_level: float) -> stats.Ranks:
    """Ranks of `AttributionSample.certified_interval`."""
    check_number(radius, "radius")
    scaled = radius / noise_deviation(sample)
    return stats.certified_ranks(sample.n_samples, scaled, confidence_level, sequential=sample.any_time)
