"""A result as a table with one line for each input and feature: what `AttributionSample.to_dataframe` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._frames.columns import label_text
from metfa.results.cautions import FLIPS_FROM, cautions, nothing_stands_out
from metfa.results.compared import Compared
from metfa.results.decisions import Decision
from metfa.results.scores import Scores, values_of_features

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample

__all__ = ["about", "columns_of", "long_form", "with_labels"]


def long_form(sample: AttributionSample, decision: Decision, confidence_level: float) -> Any:
    """The pandas.DataFrame of a sample: of a decision, and of intervals of a level."""
    with needs_extra("`to_dataframe`", "study"):
        import pandas as pd
    scores = Scores.of_all(sample, confidence_level)
    columns = columns_of(sample, decision, scores, confidence_level)
    order = [*FIRST, *(name for name in columns if name.startswith("index_")), *LAST]
    batch, size = len(sample.target), sample.n_features
    frame = pd.DataFrame({name: _lines(columns[name], batch, size) for name in order if name in columns})
    frame.attrs.update(about(sample, decision, scores, confidence_level))
    return frame.infer_objects()


def columns_of(
    sample: AttributionSample, decision: Decision, scores: Scores, confidence_level: float
) -> dict[str, Any]:
    """All columns by name, each as what broadcasts against (batch, features)."""
    return {
        **_of_inputs(sample, decision),
        **_of_features(sample),
        **_of_scores(sample, scores, confidence_level),
        **_of_decision(decision),
    }


NUMBERS = ("number", "integer")
FIRST = ("input", "input_name", "target", "feature", "feature_name")
LAST = (
    *("value", "score", "lower", "upper", "before", "after", "vanilla", "threshold", "above", "below", "n"),
    *("pvalue_above", "pvalue_below", "mark", "kind", "flip_rate", "caution"),
)


def _lines(entries: Any, batch: int, size: int) -> np.ndarray:
    """A column of the table from what broadcasts against (batch, features)."""
    return np.broadcast_to(entries, (batch, size)).reshape(-1)


def _objects(entries: Any) -> np.ndarray:
    """Python's own objects, such as texts and tuples, in an array along one axis."""
    entries = list(entries)
    made = np.empty(len(entries), dtype=object)
    made[:] = entries
    return made


def _of_inputs(sample: AttributionSample, decision: Decision) -> dict[str, Any]:
    batch = len(sample.target)
    said = [
        "; ".join([*cautions(sample, row, FLIPS_FROM), *nothing_stands_out(decision.nothing, row, sample.noun)])
        for row in range(batch)
    ]
    found: dict[str, Any] = {
        "input": np.arange(batch)[:, None],
        "input_name": _objects(sample.input_names)[:, None],
        "target": _objects(sample.target)[:, None],
        "caution": _objects(said)[:, None],
    }
    if sample.flip_rate is not None:
        found["flip_rate"] = sample.flip_rate[:, None]
    return found


def _of_features(sample: AttributionSample) -> dict[str, Any]:
    """Places of the features, their names along one axis, and the input's own numbers."""
    places = np.arange(sample.n_features)
    found: dict[str, Any] = {"feature": places}
    shape = sample.feature_shape
    if len(shape) == 1:
        names = sample.feature_names or [f"feature {place}" for place in places]
        found["feature_name"] = _objects(names)
    else:
        found |= {f"index_{axis}": index for axis, index in enumerate(np.unravel_index(places, shape))}
    values = values_of_features(sample)
    return found if values is None else found | {"value": with_labels(sample, values).reshape(len(values), -1)}


def with_labels(sample: AttributionSample, values: np.ndarray) -> np.ndarray:
    """The values, those of labels, truth values and dates of a frame's columns as texts."""
    columns = sample.provenance.get("columns") or []
    if values.shape[1:] != (len(columns),):
        return values
    found = values.astype(object)
    for place, column in enumerate(columns):
        for row in np.flatnonzero(~np.isnan(values[:, place])) if column["kind"] not in NUMBERS else ():
            found[row, place] = label_text(column, float(values[row, place]))
    return found


def _of_scores(sample: AttributionSample, scores: Scores, confidence_level: float) -> dict[str, Any]:
    low, high = (np.full(1, np.nan), np.full(1, np.nan)) if scores.ends is None else scores.ends
    found = {"score": scores.values, "lower": low, "upper": high}
    if scores.vanilla is not None:
        found["vanilla"] = scores.vanilla
    for name, part in zip(("before", "after"), sample.pair or (), strict=False):
        found[name] = Scores.of_all(part, confidence_level).values
    return {name: np.reshape(entries, (len(entries), -1)) for name, entries in found.items()}


def _of_decision(decision: Decision) -> dict[str, Any]:
    marks = decision.marks.reshape(len(decision.marks), -1)
    kinds = _objects(decision.kinds[mark] for mark in (-1, 0, 1))
    found = {
        "threshold": np.broadcast_to(decision.thresholds, decision.marks.shape),
        "above": decision.test.above,
        "below": decision.test.below,
        "pvalue_above": decision.pvalue("greater"),
        "pvalue_below": decision.pvalue("less"),
    }
    lines = {name: entries.reshape(marks.shape) for name, entries in found.items()}
    return lines | {"n": decision.test.n, "mark": marks, "kind": kinds[marks + 1]}


def about(sample: AttributionSample, decision: Decision, scores: Scores, confidence_level: float) -> dict[str, Any]:
    """What the numbers are, for the ``attrs`` of tables and arrays: plain texts and numbers."""
    compared = Compared.of(sample, 0)
    found = {
        "score": f"{sample.score_name}: {scores.called}",
        "decision": decision.question(sample.noun),
        "confidence_level": scores.level or None,
        "intervals": sample.too_few_for(confidence_level) or f"{scores.intervals(2)} of the {scores.median}",
        "difference": None if compared is None else compared.about,
        "about": None if sample.population is None else sample.population.about,
    }
    return {name: said for name, said in found.items() if said is not None}
