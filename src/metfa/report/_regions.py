"""Regions of a picture as the page draws them, and the terms of regions that are shown beside their pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa.report._cells import packed
from metfa.results.regional import levels_of_regions
from metfa.results.regions import Regions, regions_of
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms
from metfa.segmentation.explanation import ContextExplanation
from metfa.stats.sequential import log_e_table

__all__ = ["log_e_values_of", "outlines_of", "plane_of", "pooled_beside", "terms_of_pair"]

PICTURE = (1, 3)  # channels


def plane_of(sample: AttributionSample) -> tuple[int, int] | None:
    """Height and width of the picture that the sample's regions lie in; None where they lie in no picture."""
    if sample.regions is None:
        return None
    shape = sample.regions.feature_shape
    if len(shape) == 3 and shape[0] in PICTURE and np.shape(sample.inputs)[1:] == shape:
        shape = shape[1:]  # all channels of a pixel
    return (shape[0], shape[1]) if len(shape) == 2 else None


def outlines_of(regions: Regions, plane: tuple[int, int]) -> dict[str, Any]:
    """The regions of one input as runs of pixels, row by row: of each its distance to the run before, and its length.

    Regions may overlap. A run may go on in the next row.
    """
    counts, gaps, lengths = [], [], []
    for members in regions.members():
        places = np.unique(members % (plane[0] * plane[1]))
        first = np.flatnonzero(np.diff(places, prepend=-2) > 1)
        starts, ends = places[first], places[np.append(first[1:], len(places)) - 1] + 1
        counts.append(len(first))
        gaps.append(starts - np.append(0, ends[:-1]))
        lengths.append(ends - starts)
    runs = np.stack([np.concatenate(gaps), np.concatenate(lengths)]).astype("<u4")
    planes = runs.view(np.uint8).reshape(2, -1, 4).transpose(0, 2, 1)  # equal bytes together are packed in few
    return {"shape": list(plane), "counts": counts, "runs": packed(planes)}


def log_e_values_of(sample: AttributionSample, terms: Terms) -> list[float] | None:
    """Logarithms of e-values by the count, if they decide: for bounds on regions that a reader draws."""
    return log_e_table(sample.n_samples - terms.split).tolist() if sample.any_time else None


def pooled_beside(
    result: AttributionSample | ContextExplanation, regions: Any, index: int, batch: int
) -> AttributionSample | None:
    """Regions to show beside a result of one input, the one at `index` of a `batch`; None where there are none.

    These are the given `regions`, or what they return if they are a function, or else those that `metfa.Until` asked
    about. Results whose features are regions already stay as they are.
    """
    if isinstance(result, ContextExplanation):
        regions = regions(result) if callable(regions) else regions
        return None if regions is None else result.over(regions)
    if result.regions is not None:
        return None
    if regions is None:
        regions = None if result.stopping is None else result.stopping.over
        return None if regions is None else result.over(regions)
    if callable(regions):
        regions, index, batch = regions(result), 0, 1
        if regions is None:
            return None
    asked = regions_of(regions)
    asked.check_fits(result.feature_shape, batch)
    return result.over(asked.of_input(index))


def terms_of_pair(
    result: AttributionSample | ContextExplanation, pooled: AttributionSample, threshold: Any, given: dict[str, Any]
) -> tuple[Terms, Terms, bool]:
    """Terms of pixels, those of the regions beside them, and whether the `threshold` was given for the regions too.

    A number for pixels is none for sums over them, and differences are compared with 0. Regions have a correction of
    their own where none is given, see `levels_of_regions`.
    """
    asked = pooled.regions
    assert asked is not None
    number = threshold is not None and not callable(threshold)
    dropped = asked.against is not None or (asked.how == "sum" and number)
    levels = levels_of_regions(pooled, given["alpha"], given["correction"])
    of_regions = pooled.terms(**levels) if dropped else pooled.terms(threshold, split=given["split"], **levels)
    return result.terms(threshold, **given), of_regions, threshold is not None and not dropped
