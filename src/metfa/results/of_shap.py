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
    """The inputs, or where these are texts their words; None for regions, pairs and rows of a data set."""
    if sample.noun != "feature" or sample.population is not None:
        return None
    if isinstance(sample.inputs, list):
        words = sample.feature_names
        return None if words is None else np.array([words])
    found = values_of_features(sample)
    return sample.inputs if found is None and isinstance(sample.inputs, np.ndarray) else found
