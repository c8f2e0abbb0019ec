"""What was chosen on the page: it comes from a browser, so that everything is checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa.results.corrections import check_alpha, check_correction
from metfa.results.sample import AttributionSample

__all__ = ["Chosen"]


@dataclass(frozen=True)
class Chosen:
    """Alpha, correction, thresholds that were moved (None: as made) and drawn pixels, each of the inputs shown."""

    alpha: float
    correction: str | None
    moved: tuple[float | None, ...]
    moved_of_regions: tuple[float | None, ...]
    drawn: tuple[np.ndarray, ...]

    @classmethod
    def read(cls, written: Any, sample: AttributionSample) -> Chosen:
        """From the page's message; TypeError, ValueError or KeyError if it does not fit the samples."""
        check_alpha(written["alpha"])
        if not isinstance(written["correction"], str):
            raise TypeError("the correction, which must be a text")
        batch = len(sample.target)
        drawn = [_mask(runs, sample.n_features) for runs in _listed(written["drawn"], batch)]
        return cls(
            float(written["alpha"]),
            check_correction(written["correction"]),
            tuple(map(_threshold, _listed(written["moved"], batch))),
            tuple(map(_threshold, _listed(written["movedOfRegions"], batch))),
            tuple(drawn),
        )


def _listed(entries: Any, batch: int) -> list[Any]:
    """One entry for each input, or none: a table has a page as a whole."""
    if not isinstance(entries, list) or len(entries) not in (0, batch):
        raise TypeError(f"a list of {batch} entries")
    return entries


def _threshold(number: Any) -> float | None:
    if number is not None and (type(number) not in (int, float) or not math.isfinite(number)):
        raise TypeError("a threshold, which must be a number")
    return None if number is None else float(number)


def _mask(runs: Any, size: int) -> np.ndarray:
    """Which features lie in runs [first, number]."""
    mask = np.zeros(size, bool)
    for first, number in runs:
        if type(first) is not int or type(number) is not int or not 0 <= first < first + number <= size:
            raise ValueError("a run of pixels, which must lie in the map")
        mask[first : first + number] = True
    return mask
