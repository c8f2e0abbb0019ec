"""The layer of certified radii: how far the input may change while a decision holds, on the terms of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metfa.report._cells import packed
from metfa.results.certified import check_certifiable, noise_deviation, radii_of
from metfa.results.decisions import Decision
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms

__all__ = ["certificate_of"]


def certificate_of(
    sample: AttributionSample, terms: Terms, decision: Decision, placed: Callable[[np.ndarray], np.ndarray]
) -> dict[str, Any] | None:
    """Radii of a sample of one input as the page reads them; None where there is no certificate.

    There is none under noise that is not Gaussian, if the rule for the threshold (see `terms`) saw the samples that are
    tested, if there is no threshold, and for corrections without bounds.
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
