"""Maps to look at, in steps that are small beside what can be seen: 65,536 from the least to the largest score."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._sample_size import samples_for_interval, too_few_for_interval
from metfa.report._packing import packed
from metfa.result import AttributionSample

__all__ = ["layers_of"]

STEPS = 2**16 - 1
FEW_STEPS = 2**8 - 1
MANY_FEATURES = 2**19  # of more, maps are told in 256 steps


def layers_of(sample: AttributionSample, confidence_level: float) -> dict[str, Any]:
    """The maps of a sample of one input, and the exact level of its bounds."""
    maps = {"vanilla": sample.vanilla[0], "mean": sample.mean()[0]}
    told: dict[str, Any] = {"asked": confidence_level, "level": None, "missing": None}
    if sample.n_samples >= samples_for_interval(confidence_level):
        interval = sample.confidence_interval(confidence_level)
        smoothed = sample.smoothed(confidence_level)[0]
        maps |= {"smoothed": smoothed, "lower": interval.low[0], "upper": interval.high[0]}
        told["level"] = interval.confidence_level
    else:
        told["missing"] = too_few_for_interval(sample.n_samples, confidence_level)
    told["top"] = _top(list(maps.values()))
    low = min(float(scores.min()) for scores in maps.values())
    high = max(float(scores.max()) for scores in maps.values())
    steps = STEPS if sample.n_features <= MANY_FEATURES else FEW_STEPS
    told |= {"low": low, "high": high, "steps": steps, "bits": 16 if steps == STEPS else 8}
    told["maps"] = {name: packed(_steps(scores, low, high, steps)) for name, scores in maps.items()}
    return told


def _top(maps: list[np.ndarray]) -> float:
    """End of the colour scale: only 1 in 1,000 scores is larger, as in `metfa.plot.figure`."""
    strength = np.abs(np.stack(maps).astype(np.float64))
    return float(np.quantile(strength, 0.999)) or float(strength.max()) or 1.0


def _steps(scores: np.ndarray, low: float, high: float, steps: int) -> np.ndarray:
    span = (high - low) or 1.0
    if not np.isfinite(span):  # of the largest numbers there are
        scores, low, span = scores / 2, low / 2, high / 2 - low / 2
    shares = (scores.astype(np.float64) - low) / span
    return np.rint(shares * steps).astype("<u2" if steps == STEPS else np.uint8)
