"""The layer of certified radii: how far the input may be changed while a decision holds, as the page was made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa.report._packing import packed
from metfa.results.certified import CORRECTIONS, certified, noise_deviation
from metfa.results.sample import AttributionSample
from metfa.results.sample_size import TooFewSamplesError

if TYPE_CHECKING:
    from metfa.report._content import Decisions

__all__ = ["certificate_of"]


def certificate_of(
    sample: AttributionSample,
    height: float,
    decisions: Decisions,
    held_out: int,
    placed: Callable[[np.ndarray], np.ndarray],
    *,
    saw_tested: bool,
) -> dict[str, Any] | None:
    """Radii of a sample of one input as the page reads them; None where nothing is promised.

    That is: under other noise than Gaussian, with a threshold that saw the samples that are tested (`saw_tested`,
    unless some were held out for it), or by a correction that gives no bounds.
    """
    if not np.isfinite(height) or (saw_tested and not held_out) or decisions.correction not in CORRECTIONS:
        return None
    try:
        noise_deviation(sample)
    except ValueError:
        return None
    try:
        radii = certified(sample, height, decisions.alpha, decisions.correction, held_out)[0][0]
    except TooFewSamplesError:
        return None
    return {
        "radii": packed(placed(radii).astype("<f4")),
        "largest": float(radii.max()),
        "alpha": decisions.alpha,
        "correction": decisions.correction or "none",
        "threshold": height,
    }
