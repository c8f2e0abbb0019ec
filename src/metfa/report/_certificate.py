"""The layer of certified radii: how far the input may be changed while a decision holds, as the page was made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metfa.report._packing import packed
from metfa.results.certified import check_certifiable, noise_deviation, radii_of
from metfa.results.decisions import Decision
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms

__all__ = ["certificate_of"]


def certificate_of(
    sample: AttributionSample, terms: Terms, decision: Decision, placed: Callable[[np.ndarray], np.ndarray]
) -> dict[str, Any] | None:
    """Radii of a sample of one input as the page reads them; None where nothing is promised.

    That is: under other noise than Gaussian, with a threshold by a rule that saw the samples that are tested, as the
    `terms` say, without one, or by a correction that gives no bounds.
    """
    threshold = decision.threshold
    if threshold is None or not np.isfinite(threshold):
        return None
    try:
        check_certifiable(terms)
        deviation = noise_deviation(sample)
    except ValueError:
        return None
    radii = radii_of(decision, deviation)[0]
    return {
        "radii": packed(placed(radii).astype("<f4")),
        "largest": float(radii.max()),
        "alpha": terms.alpha,
        "correction": terms.correction or "none",
        "threshold": threshold,
    }
