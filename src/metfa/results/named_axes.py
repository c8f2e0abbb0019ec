"""A result on named axes: the xarray.Dataset that `AttributionSample.to_xarray` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa.results.long_form import about, columns_of
from metfa.results.scores import Scores

if TYPE_CHECKING:
    from metfa.results.decisions import Decision
    from metfa.results.sample import AttributionSample

__all__ = ["dataset"]

PLACES = ("input", "input_name", "target", "feature", "feature_name")  # axes and their labels
OF_INPUTS = ("flip_rate", "caution")


def dataset(sample: AttributionSample, decision: Decision, confidence_level: float) -> Any:
    """The xarray.Dataset of a sample: of a decision, and of intervals of a level."""
    with needs_extra("`to_xarray`"):
        import xarray  # pyright: ignore[reportMissingImports]
    scores = Scores.of_all(sample, confidence_level)
    features = [f"index_{axis}" for axis in range(len(sample.feature_shape))]
    features = ["feature"] if len(features) == 1 else features
    shape = (len(sample.target), *sample.feature_shape)
    found: dict[str, Any] = {"values": (["sample", "input", *features], sample.values)}
    for name, entries in columns_of(sample, decision, scores, confidence_level).items():
        if name in OF_INPUTS:
            found[name] = (["input"], _plain(entries[:, 0]))
        elif name == "n":
            found[name] = ([], entries)
        elif name not in (*PLACES, *features):
            full = np.broadcast_to(entries, (shape[0], sample.n_features))
            found[name] = (["input", *features], _plain(full.reshape(shape)))
    coordinates: dict[str, Any] = {
        "sample": np.array(sample.sample_ids),
        "input_name": ("input", np.array(sample.input_names)),
        "target": ("input", _plain(np.array([*sample.target, None], dtype=object)[:-1])),
    }
    if features == ["feature"] and sample.feature_names is not None:
        coordinates["feature"] = np.array(sample.feature_names)
    return xarray.Dataset(found, coordinates, about(sample, decision, scores, confidence_level))


def _plain(entries: np.ndarray) -> np.ndarray:
    """Python's own objects as numbers if they all are, else as texts: files of arrays know no others."""
    if entries.dtype != object:
        return entries
    kinds = {type(one) for one in entries.ravel()}
    return entries.astype(np.result_type(*kinds) if kinds <= {int, float} else np.str_)
