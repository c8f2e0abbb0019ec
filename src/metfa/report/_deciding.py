"""What the page needs to decide as Python does: tables of p-values and e-values by counts, and least numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from metfa.results.corrections import ANY_TIME, CORRECTIONS
from metfa.results.families import capped_e_values, samples_needed
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms
from metfa.stats.sequential import reciprocal_table
from metfa.stats.sign_null import upper_tail_table

__all__ = ["alphas_with", "deciding"]

ALPHAS = (1e-6, 1e-5, 1e-4, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)


def alphas_with(alpha: float) -> list[float]:
    """Stops of the slider of alpha."""
    return sorted({*ALPHAS, alpha})


def deciding(sample: AttributionSample, terms: Terms) -> dict[str, Any]:
    """What the page decides by about the features of one input, at each alpha and correction."""
    n_tested, m, any_time = sample.n_samples - terms.split, sample.n_features, sample.any_time
    return {
        "tails": upper_tail_table(n_tested).tolist(),
        "reciprocals": reciprocal_table(n_tested).tolist(),
        "eValues": capped_e_values(n_tested).tolist(),
        "anyTime": any_time,
        "fixed": not replace(terms, correction="closed-e-bh").unproven,
        "together": replace(terms, correction="bh").together,
        "harmonic": float((1 / np.arange(1, m + 1)).sum()),
        "needed": {
            str(correction or "none"): [
                samples_needed(replace(terms, alpha=a, correction=correction), m, any_time=any_time)
                for a in alphas_with(terms.alpha)
            ]
            for correction in (ANY_TIME if any_time else CORRECTIONS)
        },
    }
