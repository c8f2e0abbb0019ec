"""Both parts of a comparison beside their differences: the smoothed score of each with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metfa.results.cautions import named_parts
from metfa.results.sample import AttributionSample
from metfa.results.scores import Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_parts"]

APART = 0.16  # of a row, so that the error bars of both parts do not hide each other
LOOKS: tuple[dict[str, Any], ...] = ({"marker": "o", "mfc": "white"}, {"marker": "s", "mfc": "black"})


def draw_parts(ax: Axes, sample: AttributionSample, shown: np.ndarray, confidence_level: float) -> list[Any]:
    """Draw the scores of both parts of a comparison of one input, row by row; returns the entries of the legend."""
    from matplotlib.lines import Line2D

    handles: list[Any] = []
    for (name, part), look, side in zip(named_parts(sample, *(sample.pair or ())), LOOKS, (-1, 1), strict=True):
        scores, places = Scores.of(part, confidence_level), np.arange(len(shown)) + side * APART
        if scores.ends is not None:
            low, high = (end[shown] for end in scores.ends)
            ax.hlines(places, low, high, color="black", linewidth=1.0, zorder=2)
        drawn: dict[str, Any] = {"linestyle": "none", "color": "black", "markersize": 5, **look}
        ax.plot(scores.values[shown], places, zorder=3, **drawn)
        handles.append(Line2D([], [], label=f"{name}: {scores.called}", **drawn))
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return handles
