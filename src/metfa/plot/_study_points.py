"""Numbers of a study's figures: means and ratios of means over its inputs, with half the width of their intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metfa.evaluation.results import Evaluation
from metfa.evaluation.selection import VANILLA, Entry, figures
from metfa.stats.student import half_width, ratio_of_means

__all__ = ["mean_ratio", "of_inputs", "smoothed_to", "stability"]


def stability(evaluation: Evaluation, explainer: str, entry: Entry, *, relative: bool) -> tuple[float, float]:
    """Stability, mstd or mstd / level, with half the width of its interval."""
    outers = list(evaluation.study.outer_noises)
    spread = of_inputs(evaluation, "mstd", explainer, entry, outers)
    if not relative:
        return mean_ratio(spread)
    levels = of_inputs(evaluation, "mstd", explainer, entry, outers, "level")
    if levels and (mean := np.mean(list(levels.values()))) <= 0:
        said = f"the mean level of {explainer}, {entry[0]}, is {mean:.3g}, which does not show the size of its maps"
        raise ValueError(f"`relative`: {said}: write relative=False")
    return mean_ratio(spread, levels)


def smoothed_to(
    to: str, entry: Entry, evaluation: Evaluation, explainer: str, outer: str | None
) -> tuple[float, float]:
    """Ratio of the mstd of a smoothed map to that of another map of the same samples."""
    other: Entry = VANILLA if to == "vanilla" else ("mean", *entry[1:3], None)
    above, below = (of_inputs(evaluation, "mstd", explainer, one, [outer]) for one in (entry, other))
    return mean_ratio(above, below)


def of_inputs(
    evaluation: Evaluation,
    metric: str,
    explainer: str,
    entry: Entry,
    outers: Sequence[str | None],
    column: str = "score",
) -> dict[str, float]:
    """Means over the outer noises that have a figure, by input; inputs without any are left out."""
    found = [figures(evaluation, metric, explainer, entry, outer, column) for outer in outers]
    known = {
        name: [value for value in line if not isinstance(value, str)]
        for name, line in zip(evaluation.inputs, zip(*found, strict=True), strict=True)
    }
    return {name: float(np.mean(values)) for name, values in known.items() if values}


def mean_ratio(above: dict[str, float], below: dict[str, float] | None = None) -> tuple[float, float]:
    """Ratio of means over the inputs that have both (without `below`, the mean), and half the width of its interval."""
    both = [name for name in above if below is None or name in below]
    a = np.array([above[name] for name in both])
    ratio, error = ratio_of_means(a, np.array([1.0 if below is None else below[name] for name in both]))
    return ratio, half_width(error, len(both))
