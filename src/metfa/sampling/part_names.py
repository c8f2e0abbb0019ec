"""Names for the features of several inputs, and the layout of their maps that holds them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metfa.results.layout import Layout
from metfa.results.until import Until
from metfa.sampling.request import Request, fitting_names

__all__ = ["layout_of"]


def layout_of(request: Request, layout: Layout, clean: np.ndarray, scores: np.ndarray | None) -> Layout:
    """The layout with the names of the parts' features.

    Raises for names that do not fit, for regions, and if what passes for attributions are the model's scores, by the
    clean maps and the scores of the clean inputs.
    """
    by_rule = request.n_samples.over if isinstance(request.n_samples, Until) else None
    if request.over is not None or by_rule is not None:
        one = layout.names[0]
        raise TypeError(
            "`over` is for one map, and `explainer` returned attributions of several parts: ask a part afterwards, as "
            f"in `result[{one!r}].over(regions)`"
        )
    *others, last = layout.split(clean).values()
    alike = scores is not None and last.shape == scores.shape and np.allclose(last, scores, rtol=1e-3)
    if len(others) == 1 and alike:
        raise TypeError(
            "`explainer` returned a pair for two inputs, and the second is the model's scores, not attributions: "
            f"return a pair of a dict and the scores, ({{{layout.names[0]!r}: ...}}, scores)"
        )
    given, required = request.feature_names, request.run.feature_names is not None
    if given is None:
        return layout
    if not isinstance(given, dict):
        raise ValueError(
            "`feature_names` is one list of names, and `explainer` returned attributions of "
            f"{len(layout.parts)} parts: write a dict with a list for each part that has names, such as "
            f"{{{layout.names[-1]!r}: [...]}}"
        )
    unknown = [name for name in given if name not in layout.names]
    if unknown and required:
        raise ValueError(f"`feature_names` has names of {unknown[0]!r}, of which `explainer` returned no attributions")
    return Layout(
        tuple(
            replace(part, feature_names=fitting_names(given.get(part.name), part.shape, required=required, name=own))
            for part, own in ((part, f"feature_names[{part.name!r}]") for part in layout.parts)
        )
    )
