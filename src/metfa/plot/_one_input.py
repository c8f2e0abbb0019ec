"""One input of a sample, which is what a figure shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa.results.decisions import heights_of
from metfa.results.sample import AttributionSample

__all__ = ["one_input"]


def one_input(sample: AttributionSample, index: int, threshold: Any) -> tuple[AttributionSample, Any]:
    """The sample of one input alone, and the threshold that is meant for it."""
    one = sample.of_input(index)
    if not callable(threshold):
        heights = heights_of(sample, threshold, 0)
        threshold = heights[index : index + 1] if heights.ndim else heights
        threshold = np.broadcast_to(threshold, (1, *sample.feature_shape))
    return one, threshold
