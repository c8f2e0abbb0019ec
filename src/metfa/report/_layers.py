"""Maps for the page: in double or single precision, or for very many pixels in 256 steps."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.palettes import SCORES, SIGNED_SCORES
from metfa.plot.images import scale_end
from metfa.report._cells import packed
from metfa.report._planes import as_words, packed_planes
from metfa.results.sample import AttributionSample
from metfa.results.scores import interval_and_smoothed, why_no_ends
from metfa.stats import ConfidenceInterval

__all__ = ["colours_of", "layers_of", "written"]

COLOURS = 256  # steps of a colour map
STEPS = 2**8 - 1
FEW_FEATURES = 2**12  # up to so many, scores are written to all digits
MANY_FEATURES = 2**19  # with more, maps are written in steps
SINGLE = (1e-30, 1e30)  # magnitudes that single precision holds
DTYPES = {"single": "<f4", "double": "<f8"}


def layers_of(
    sample: AttributionSample,
    confidence_level: float,
    placed: Callable[[np.ndarray], np.ndarray],
    sorted_scores: tuple[ConfidenceInterval | None, np.ndarray | None] | None = None,
) -> dict[str, Any]:
    """The maps of a sample, of all its inputs one after the other, and the exact level of its bounds.

    `sorted_scores` are its interval and its smoothed scores, of `interval_and_smoothed`, where the caller has them.
    `placed` puts the features of the sample where the page shows them, such as a context around its object.
    """
    maps = {"mean": sample.mean()}
    if sample.vanilla is not None and not sample.of_effects:  # as of a population
        maps = {"vanilla": sample.vanilla, **maps}
    layers: dict[str, Any] = {"level": None, "missing": None}
    interval, smoothed = sorted_scores or interval_and_smoothed(sample, confidence_level)[:2]
    if interval is not None:
        maps |= {} if smoothed is None else {"smoothed": smoothed}
        maps |= {"lower": interval.low, "upper": interval.high}
        layers["level"] = interval.confidence_level
    else:
        layers["missing"] = why_no_ends(sample, confidence_level)
    return layers | written(maps, placed)


def written(maps: dict[str, np.ndarray], placed: Callable[[np.ndarray], np.ndarray] = np.asarray) -> dict[str, Any]:
    """Maps by their names as the page reads them, their lowest and highest score, and the end of their common scale."""
    stacked = np.stack([scores.astype(np.float64) for scores in maps.values()])
    low, high = float(stacked.min()), float(stacked.max())
    kind = _kind(stacked)
    shown = {"low": low, "high": high, "top": scale_end(stacked), "kind": kind}
    if kind == "steps":
        steps = [_steps(placed(scores), low, high) for scores in stacked]
        planes = packed_planes(np.stack(steps).reshape(len(steps), -1, steps[0].shape[-1]))
        return {**shown, **planes, "maps": list(maps)}
    packed_maps = {
        name: packed(placed(scores).astype(DTYPES[kind])) for name, scores in zip(maps, stacked, strict=True)
    }
    return {**shown, "maps": packed_maps}


def colours_of(*, signed: bool) -> str:
    """The colour map of scores, red, green and blue of each step in a byte, in base64."""
    with needs_extra("a report with maps"):
        from matplotlib import colormaps
    scale = colormaps[SIGNED_SCORES if signed else SCORES](np.linspace(0, 1, COLOURS), bytes=True)[:, :3]
    return base64.b64encode(scale.tobytes()).decode("ascii")


def _kind(stacked: np.ndarray) -> str:
    """How scores are written: in "steps" from the smallest to the largest, in "single" or in "double" precision."""
    if stacked[0].size > MANY_FEATURES:
        return "steps"
    strength = np.abs(stacked)
    faint = strength[strength > 0].min(initial=np.inf)
    exact = stacked[0].size <= FEW_FEATURES or faint < SINGLE[0] or strength.max() > SINGLE[1]
    return "double" if exact else "single"


def _steps(scores: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.rint(np.clip((scores - low) / ((high - low) or 1.0), 0, 1) * STEPS).astype(as_words(STEPS))
