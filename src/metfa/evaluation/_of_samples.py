"""Measures of the samples under P: their number, the width of intervals, decisions and certificates.

Terms that are not set are those of the result (`AttributionSample.terms`), except alpha, which the level gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from metfa import metrics
from metfa.evaluation._figures import Row, plain_row, score_row
from metfa.results.corrections import check_correction
from metfa.results.decisions import TooFewSamplesError
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms
from metfa.results.until import Until

__all__ = [
    "alpha_at",
    "certified_radius",
    "certified_share",
    "correction_of",
    "interval_width",
    "region_score",
    "rule_met",
    "sample_size",
    "undecided",
]


def interval_width(model: Any, inputs: Any, sample: AttributionSample, level: float) -> list[Row]:  # noqa: ARG001
    """Mean width of the intervals; model and inputs are not used, but other measures of samples take them."""
    return [score_row("interval_width", metrics.interval_width(sample, level))]


def sample_size(model: Any, inputs: Any, sample: AttributionSample, level: None) -> list[Row]:  # noqa: ARG001
    """N, which differs from input to input where a rule ends sampling."""
    return [plain_row("sample_size", float(sample.n_samples))]


def rule_met(model: Any, inputs: Any, sample: AttributionSample, level: None) -> list[Row]:  # noqa: ARG001
    """1 if the rule was met, 0 if a budget ended sampling; the mean is the share of inputs that met the rule."""
    assert sample.stopping is not None
    return [plain_row("rule_met", float(sample.stopping.reason == "reached"))]


def undecided(model: Any, inputs: Any, sample: AttributionSample, level: float, **settings: Any) -> list[Row]:  # noqa: ARG001
    """Share of the features, at alpha = 1 - level."""
    return _decided("undecided", lambda: metrics.undecided(sample, alpha=alpha_at(level), **settings))


def certified_radius(model: Any, inputs: Any, sample: AttributionSample, level: float, **settings: Any) -> list[Row]:  # noqa: ARG001
    """Mean L2 radius, at alpha = 1 - level."""
    return _decided("certified_radius", lambda: metrics.certified_radius(sample, alpha=alpha_at(level), **settings))


def certified_share(model: Any, inputs: Any, sample: AttributionSample, level: float, **settings: Any) -> list[Row]:  # noqa: ARG001
    """Share of the features certified to a radius, at alpha = 1 - level."""
    return _decided("certified_share", lambda: metrics.certified_share(sample, alpha=alpha_at(level), **settings))


def region_score(model: Any, inputs: Any, sample: AttributionSample, level: float, **settings: Any) -> list[Row]:
    """The model's score of the significantly important region, or regions, alone, at alpha = 1 - level."""

    def scores() -> metrics.Scores:
        important = sample.significance_map(alpha=alpha_at(level)) == 1
        if sample.regions is not None:
            important = np.any(sample.regions.as_masks()[important[0]], axis=0, keepdims=True)
        return metrics.region_score(model, inputs, important, list(sample.target), **settings)

    return _decided("region_score", scores)


def _decided(metric: str, scores: Callable[[], metrics.Scores]) -> list[Row]:
    """A figure of decisions, or why there is none: the samples needed depend on the number of features."""
    try:
        return [score_row(metric, scores())]
    except TooFewSamplesError:
        return [plain_row(metric, np.nan, "so few samples that nothing could become significant")]


def alpha_at(level: float) -> float:
    """Alpha of decisions at a confidence level."""
    return round(1 - level, 12)


def correction_of(settings: Mapping[str, Any], rule: Until | None) -> str | None:
    """Correction of a measure: the one that is set, else that of the rule that ended sampling."""
    given = settings.get("correction")
    if given is not None:
        return check_correction(given)
    return Terms.correction if rule is None or rule.undecided is None else rule.correction
