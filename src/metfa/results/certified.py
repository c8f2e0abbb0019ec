"""Certified radii and intervals: what Gaussian noise guarantees for the medians if the input changes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from metfa import stats
from metfa._base.validation import check_number
from metfa.results.decisions import Decision
from metfa.results.terms import Terms

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample

__all__ = [
    "CORRECTIONS",
    "assumption_of",
    "certified",
    "check_certifiable",
    "noise_deviation",
    "radii_of",
    "ranks_within",
]

ASSUMED = "threshold given; assumed chosen without these samples"
CORRECTIONS = (None, "bonferroni", "bh", "e-bh")  # those for which the levels of the bounds are known


def noise_deviation(sample: AttributionSample) -> float:
    """Standard deviation of the Gaussian noise of a sample; ValueError for any other noise."""
    deviation = sample.provenance.get("gaussian_std")
    if type(deviation) is not float or not (math.isfinite(deviation) and deviation > 0):
        raise ValueError(
            "a certificate needs Gaussian noise with one standard deviation, such as "
            f"`metfa.noise.Gaussian(0.1, bounds=(0, 1))`, but the samples are under {sample.provenance.get('noise')}"
        )
    return deviation


def certified(sample: AttributionSample, terms: Terms) -> tuple[np.ndarray, Decision]:
    """Radii (see `AttributionSample.certified_radius`), and the decision behind them."""
    deviation = noise_deviation(sample)
    check_certifiable(terms)
    decision = sample.decide(terms)
    return radii_of(decision, deviation), decision


def assumption_of(terms: Terms) -> str | None:
    """What a certificate assumes of its threshold and cannot check, in words; None where samples left out gave it."""
    fixed = callable(terms.threshold) or terms.split or np.array_equal(terms.threshold, 0)
    return None if fixed else ASSUMED


def check_certifiable(terms: Terms) -> None:
    """Raise unless radii are known for the correction, and the threshold does not depend on the tested samples."""
    if terms.correction not in CORRECTIONS:
        raise ValueError(
            f"`correction` must be {', '.join(map(repr, CORRECTIONS))} for a certificate, got {terms.correction!r}"
        )
    if callable(terms.threshold) and not terms.split:
        raise ValueError(
            "`threshold` must not depend on the samples that are tested, or it would move with the input: write a "
            "number, or `split=10` so that the first ten samples choose it"
        )


def radii_of(decision: Decision, deviation: float) -> np.ndarray:
    r"""Certified radius of each feature under Gaussian noise, (batch, \*features) float64."""
    marks, test, terms = decision.marks, decision.test, decision.terms
    counts = np.where(marks > 0, test.above, test.below)
    found = np.zeros(marks.shape)
    for row, level in enumerate(_levels(marks, terms.alpha, terms.correction)):
        marked = marks[row] != 0
        found[row][marked] = deviation * stats.certified_radius(
            counts[row][marked], test.n, level, sequential=decision.any_time
        )
    return found


def _levels(marks: np.ndarray, alpha: float, correction: str | None) -> list[float]:
    """Level of each input's bounds: r alpha / (2 m) if r of m features are selected (Benjamini and Yekutieli 2005)."""
    if correction is None:
        return [alpha] * len(marks)
    share = alpha / (2 * marks[0].size)
    if correction == "bonferroni":
        return [share] * len(marks)
    return [share * max(int(np.count_nonzero(row)), 1) for row in marks]


def ranks_within(sample: AttributionSample, radius: float, confidence_level: float) -> stats.Ranks:
    """Ranks of `AttributionSample.certified_interval`."""
    check_number(radius, "radius")
    scaled = radius / noise_deviation(sample)
    return stats.certified_ranks(sample.n_samples, scaled, confidence_level, sequential=sample.any_time)
