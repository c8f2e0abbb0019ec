"""A result as SHAP's own kind of result: what `AttributionSample.to_shap` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa.results.long_form import with_labels
from metfa.results.scores import Scores, values_of_features

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample

__all__ = ["explanation"]


def explanation(sample: AttributionSample, confidence_level: float) -> Any:
    """The shap.Explanation of a sample, with intervals of a level."""
    with needs_extra("`to_shap`", "table"):
        from shap import Explanation
    scores = Scores.of_all(sample, confidence_level)
    low, high = (None, None) if scores.ends is None else scores.ends
    data = _data(sample)
    labelled = data is not None and data.shape == scores.values.shape and bool(sample.provenance.get("columns"))
    return Explanation(
        scores.values,
        data=data,
        display_data=with_labels(sample, data) if labelled and data is not None else None,
        instance_names=list(sample.input_names),
        feature_names=None if sample.feature_names is None else list(sample.feature_names),
        lower_bounds=low,
        upper_bounds=high,
        error_std=sample.std().astype(np.float64) if sample.n_samples > 1 else None,
    )


def _data(sample: AttributionSample) -> np.ndarray | None:
    """The inputs, channels last if they have some, or the words of a text; None where a score has no place in them."""
    if sample.noun != "feature" or sample.population is not None:
        return None
    if isinstance(sample.inputs, list):
        words = sample.feature_names
        return np.array([words]) if words is not None and len(sample.inputs) == 1 else None
    found = values_of_features(sample)
    if found is not None or not isinstance(sample.inputs, np.ndarray) or sample.inputs.ndim < 3:
        return found
    last = np.moveaxis(sample.inputs, 1, -1)
    return next((one for one in (last, sample.inputs) if one.shape[1:-1] == sample.feature_shape), None)
