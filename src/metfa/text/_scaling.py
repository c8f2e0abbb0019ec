"""Scores of words scaled to [0, 1], text by text."""

from __future__ import annotations

import numpy as np

from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.explainers.heatmaps import scale_to_unit

__all__ = ["scaled_words"]


def scaled_words(maps: np.ndarray, read: np.ndarray | None = None) -> np.ndarray:
    """Scores of each row scaled by its smallest and largest; words that the model does not `read` stay 0, unscaled.

    The score of a single word is always 0, with a warning.
    """
    if maps.shape[1] == 1:
        warn(
            "a single word cannot be scaled between the smallest and the largest score: take `scale=False` (and give "
            "a text without blanks as a list of tokens)",
            DegenerateAttributionsWarning,
        )
    if read is None or read.all():
        return scale_to_unit(maps)
    scaled = np.zeros_like(maps)
    for row, (scores, found) in enumerate(zip(maps, read, strict=True)):
        if found.any():
            scaled[row, found] = scale_to_unit(scores[None, found])[0]
    return scaled
