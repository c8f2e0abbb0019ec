"""Certified radii and intervals: what Gaussian noise guarantees for the medians if the input changes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from metfa import stats
from metfa._base.validation import check_number
from metfa.results.corrections import E_VALUES
from metfa.results.decisions import Decision
from metfa.results.rules import saw_tested
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
CORRECTIONS = (None, "bonferroni", "bh", *E_VALUES)  # those for which the levels of the bounds are known


def noise_deviation(sample: AttributionSample) -> float:
    """Standard deviation of the Gaussian noise of a sample; ValueError for any other noise."""
    if sample.population is not None:
        raise ValueError(
            "a certificate is about changes of one input, and the samples of this result are "
            f"{sample.population.noun}s: certify the result that it was made of"
        )
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
    fixed = callable(terms.threshold) or terms.split or bool(np.all(np.equal(terms.threshold, 0)))
    return None if fixed else ASSUMED


def check_certifiable(terms: Terms) -> None:
    """Raise unless radii are known for the correction, and the threshold does not depend on the tested samples."""
    if terms.correction not in CORRECTIONS:
        raise ValueError(
            f"`correction` must be {', '.join(map(repr, CORRECTIONS))} for a certificate, got {terms.correction!r}"
        )
    if saw_tested(terms.threshold, terms.split):
        raise ValueError(
            "`threshold` must not depend on the samples that are tested, or it would move with the input: write a "
            "number, or `split=10` so that the first ten samples choose it"
        )


def radii_of(decision: Decision, deviation: float) -> np.ndarray:
    r"""Certified radius of each feature under Gaussian noise, (batch, \*features) float64."""
    marks, test = decision.marks, decision.test
    found = np.zeros(marks.shape)
    for row, of_row in enumerate(marks):
        n_marked = {side: int(np.count_nonzero(of_row == side)) for side in (1, -1)}
        for side, counts in ((1, test.above[row]), (-1, test.below[row])):
            level = _level(decision.terms, of_row.size, n_marked[side], sum(n_marked.values()))
            marked = of_row == side
            found[row][marked] = deviation * stats.certified_radius(
                counts[marked], test.n, level, sequential=decision.any_time
            )
    return found


def _level(terms: Terms, n_features: int, n_marked: int, n_of_both: int) -> float:
    """Level of the bounds of one side's marks: r alpha / m if r of m are selected.

    By Benjamini and Yekutieli 2005; for bounds that are e-values also for any other selection, such as that of closed
    e-BH (Xu, Wang and Ramdas 2022), some of whose marks have no bound above 1/2 and so the radius 0.
    """
    if terms.correction is None:
        return terms.alpha
    selected = 1 if terms.correction == "bonferroni" else max(n_of_both if terms.together else n_marked, 1)
    return terms.alpha * selected / (n_features * (2 if terms.together else 1))


def ranks_within(sample: AttributionSample, radius: float, confidence_level: float) -> stats.Ranks:
    """Ranks of `AttributionSample.certified_interval`."""
    check_number(radius, "radius")
    scaled = radius / noise_deviation(sample)
    return stats.certified_ranks(sample.n_samples, scaled, confidence_level, sequential=sample.any_time)
