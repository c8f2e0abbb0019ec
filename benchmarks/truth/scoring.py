"""Marks and rankings against both truths: every number of samples, rule and correction from the same maps.

A row is the mean over inputs. The share of false marks (FDP) leaves out inputs without marks, whose share is there too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import rankdata

import metfa
from benchmarks.truth.rules import (
    AGAINST_REST,
    DEFAULT,
    FIXED,
    OF_GIVEN_THRESHOLDS,
    RULES,
    SIGN,
    UNTESTED,
    corrections,
)
from metfa import AttributionSample, stats

__all__ = ["area", "first", "marks", "of_regions", "ranking", "top"]

SQUARES = (4, 4)  # of 2 × 2 pixels, in an image of 8 × 8


def first(sample: AttributionSample, n: int) -> AttributionSample:
    """The first `n` samples, as if no more had been drawn."""
    provenance = {name: value for name, value in sample.provenance.items() if name != "looks"}
    predictions = None if sample.predictions is None else sample.predictions[:n]
    return replace(
        sample, values=sample.values[:n], predictions=predictions, sample_ids=sample.sample_ids[:n],
        provenance=provenance,
    )  # fmt: skip


def unsigned(sample: AttributionSample) -> AttributionSample:
    """The sizes of signed scores."""
    provenance = sample.provenance | {"signed": False}
    return replace(sample, values=np.abs(sample.values), vanilla=np.abs(sample.vanilla), provenance=provenance)


def flat(maps: np.ndarray) -> np.ndarray:
    return maps.reshape(len(maps), -1)


def marks(sample: AttributionSample, task: np.ndarray, model: np.ndarray, *, scaled: bool) -> Iterator[dict[str, Any]]:
    """A row for each rule and correction; truths are bool (inputs, features)."""
    sizes = sample if scaled else unsigned(sample)
    one, mean = flat(sizes.vanilla), flat(sizes.mean())
    for rule, threshold in RULES.items() if scaled else [*RULES.items(), (f"> {FIXED:g}", FIXED)]:
        yield from _tested(sizes, rule, threshold, task, model)
    for rule, found in UNTESTED.items():
        values = one if rule.startswith("vanilla") else mean
        above = np.array([scores > _quiet(found, scores) for scores in values])
        yield {"rule": rule, "correction": "untested", **_row(above, task, model)}
    if not scaled:
        for name, values in (("vanilla", one), ("mean", mean)):
            yield {"rule": f"{name} > {FIXED:g}", "correction": "untested", **_row(values > FIXED, task, model)}
        for correction in OF_GIVEN_THRESHOLDS:
            decided = _marks_of(sample, sample.terms(0.0, correction=correction))
            yield {"rule": SIGN, "correction": correction, **_row(decided != 0, task, model)}


def of_regions(sample: AttributionSample, task: np.ndarray, model: np.ndarray) -> Iterator[dict[str, Any]]:
    """Squares of 2 × 2 pixels: their means above a threshold, and against the rest of the image, where 0 is one.

    A square is used if one of its pixels is.
    """
    squares = metfa.regions.grid(sample.feature_shape, SQUARES)
    inside = flat(squares.as_masks()).T
    task, model = (truth @ inside for truth in (task, model))
    yield from _tested(sample.over(squares), DEFAULT, RULES[DEFAULT], task, model)
    yield from _tested(sample.over(squares, against="rest"), AGAINST_REST, 0.0, task, model)


def _tested(
    sample: AttributionSample, rule: str, threshold: Any, task: np.ndarray, model: np.ndarray
) -> Iterator[dict[str, Any]]:
    """A row for each correction, at the thresholds that the rule found without one."""
    one, mean = flat(sample.vanilla), flat(sample.mean())
    found = _quiet(sample.decide, sample.terms(threshold, correction="none"))
    missing = np.isnan(np.broadcast_to(found.thresholds, found.marks.shape)).reshape(len(task), -1)
    numbers = np.broadcast_to(found.thresholds.ravel(), len(found.marks))
    for correction in corrections(rule):
        terms = replace(found.terms, threshold=numbers, nothing=found.nothing, correction=correction)
        decided = flat(found.marks) if correction == "none" else _marks_of(sample, terms)
        important, unimportant = (decided == mark for mark in (1, -1))
        row = {"no_threshold": float(missing.all(axis=1).mean()), **_row(important, task, model)}
        row["task_unimportant"] = _mean_ratio((unimportant & task).sum(axis=1), task.sum(axis=1))
        row["model_unimportant"] = _mean_ratio((unimportant & model).sum(axis=1), model.sum(axis=1))
        row |= _controls(important.sum(axis=1), one, mean, task)
        yield {"rule": rule, "correction": correction, **row}


def _marks_of(sample: AttributionSample, terms: metfa.Terms) -> np.ndarray:
    """1, -1 or 0 (inputs, features); all 0 where so few samples can mark nothing."""
    try:
        return flat(_quiet(sample.decide, terms).marks)
    except metfa.TooFewSamplesError:
        return np.zeros(flat(sample.mean()).shape, dtype=np.int8)


def _quiet(function: Any, given: Any) -> Any:
    """Inputs without a threshold are counted, so no warning is needed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", metfa.DegenerateAttributionsWarning)
        return function(given)


def _row(important: np.ndarray, task: np.ndarray, model: np.ndarray) -> dict[str, float]:
    """Number of marks, inputs without any, and for both truths the share of false marks and power."""
    row = {"marks": float(important.sum(axis=1).mean()), "unmarked": float((~important.any(axis=1)).mean())}
    for name, truth in (("task", task), ("model", model)):
        row[f"{name}_fdp"] = _mean_ratio((important & ~truth).sum(axis=1), important.sum(axis=1))
        row[f"{name}_power"] = _mean_ratio((important & truth).sum(axis=1), truth.sum(axis=1))
    return row


def _mean_ratio(parts: np.ndarray, wholes: np.ndarray) -> float:
    some = wholes > 0
    return float((parts[some] / wholes[some]).mean()) if some.any() else np.nan


def _controls(counts: np.ndarray, vanilla: np.ndarray, mean: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """As many features as were marked, from the top of the vanilla map and of the mean map, against task truth."""
    row = {}
    for name, maps in (("top_vanilla", vanilla), ("top_mean", mean)):
        weights = np.array([top(values, count) for values, count in zip(maps, counts, strict=True)])
        hits = (weights * truth).sum(axis=1)
        row[f"{name}_fdp"] = _mean_ratio(counts - hits, counts)
        row[f"{name}_power"] = _mean_ratio(hits, truth.sum(axis=1))
    return row


def top(values: np.ndarray, k: int) -> np.ndarray:
    """1 for the k largest, and for those that tie for the last places their share of them; 0 for the others."""
    if k == 0:
        return np.zeros(len(values))
    cut = np.sort(values)[-k]
    above, tied = values > cut, values == cut
    return above + tied * (k - above.sum()) / tied.sum()


def area(values: np.ndarray, truth: np.ndarray) -> float:
    """Area under the ROC curve; nan where everything or nothing is true."""
    high, low = int(truth.sum()), int((~truth).sum())
    if not (high and low):
        return np.nan
    return float((rankdata(values)[truth].sum() / high - (high + 1) / 2) / low)


def ranking(
    sample: AttributionSample, task: np.ndarray, model: np.ndarray, *, scaled: bool
) -> Iterator[dict[str, Any]]:
    """A row for each map: area under the ROC curve and precision at the number of true features."""
    sizes = sample if scaled else unsigned(sample)
    maps = {
        "vanilla": sizes.vanilla,
        "mean": sizes.mean(),
        "smoothed median": sizes.smoothed(),
        "lower bound": stats.median_interval(sizes.values, 0.95).low,
    }
    for name, found in maps.items():
        row: dict[str, Any] = {"map": name}
        for which, truths in (("task", task), ("model", model)):
            pairs = list(zip(flat(found), truths, strict=True))
            areas = np.array([area(*pair) for pair in pairs])
            hits = np.array([(top(values, truth.sum()) * truth).sum() for values, truth in pairs])
            row[f"{which}_auc"] = float(np.nanmean(areas)) if np.isfinite(areas).any() else np.nan
            row[f"{which}_precision"] = _mean_ratio(hits, truths.sum(axis=1))
        yield row
