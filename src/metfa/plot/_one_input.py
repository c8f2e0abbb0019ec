"""One input of a sample, which is what a figure shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from metfa._validation import positive_int
from metfa.result import AttributionSample

__all__ = ["one_input"]


def one_input(sample: AttributionSample, index: int, threshold: Any) -> tuple[AttributionSample, Any]:
    """The sample of one input alone, and the threshold that is meant for it."""
    index = positive_int(index, "index", minimum=0)
    batch = sample.values.shape[1]
    if index >= batch:
        raise ValueError(f"`index` must lie in 0..{batch - 1}, got {index}")
    row = slice(index, index + 1)
    if not callable(threshold):
        heights = sample._heights(threshold, 0)
        threshold = heights[row] if heights.ndim else heights
        threshold = np.broadcast_to(threshold, (1, *sample.feature_shape))
    image = sample.inputs[row] if isinstance(sample.inputs, np.ndarray) else None
    return replace(
        sample, values=sample.values[:, row], vanilla=sample.vanilla[row], inputs=image, predictions=None
    ), threshold
