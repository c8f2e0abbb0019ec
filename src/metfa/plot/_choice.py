"""Which figure a sample has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from metfa._base.validation import check_kind
from metfa.plot._bars import bars
from metfa.plot._comparison import comparison
from metfa.plot._regions import regions
from metfa.plot.images import figure
from metfa.results.sample import AttributionSample

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["drawing_of"]


def drawing_of(sample: AttributionSample) -> Callable[..., Figure]:
    """The function that draws such a sample: `regions` of maps, `bars` of features along one axis, or of maps `figure`.

    Differences of maps have a `comparison`.
    """
    check_kind(sample, "sample", AttributionSample, "`metfa.explain`")
    if sample.sample_noun != "row" and sample.regions is not None and len(sample.regions.feature_shape) == 2:
        return regions
    drawing: Any = bars if len(sample.feature_shape) == 1 else figure if sample.pair is None else comparison
    return drawing
