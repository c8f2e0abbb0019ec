"""Measures of the samples under P: how many there are, how wide their intervals, what they decide and how far it holds.

What sampling stopped by is what they decide by: the thresholds and the correction of `metfa.until`, where it tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from metfa import metrics, stats
from metfa._certified import CORRECTIONS
from metfa._decisions import terms_of_until
from metfa._rounds import RoundsUntil
from metfa._sample_size import check_alpha, check_correction, samples_for_interval, samples_needed
from metfa.evaluation._figures import Row, plain_row, score_row
from metfa.noise import gaussian_std
from metfa.result import AttributionSample
from metfa.stopping import Until

if TYPE_CHECKING:
    from metfa.evaluation._measures import Measure
    from metfa.evaluation.study import Study

__all__ = [
    "certified_radius",
    "certified_share",
    "check_samples_suffice",
    "interval_width",
    "region_score",
    "sample_size",
    "terms_told",
    "undecided",
]


def interval_width(model: Any, inputs: Any, sample: AttributionSample, level: float) -> list[Row]:  # noqa: ARG001
    """It needs neither model nor inputs, which others do that are functions of a sample."""
    return [score_row("interval_width", metrics.interval_width(sample, level))]


def sample_size(model: Any, inputs: Any, sample: AttributionSample, level: None) -> list[Row]:  # noqa: ARG001
    """N, which differs from input to input where a rule ends sampling."""
    return [plain_row("sample_size", float(sample.n_samples))]


def undecided(model: Any, inputs: Any, sample: AttributionSample, level: float, **settings: Any) -> list[Row]:  # noqa: ARG001
    """Share of the features, at alpha = 1 - level."""
    return [score_row("undecided", metrics.undecided(sample, **_terms(sample, level, settings)))]


def certified_radius(model: Any, inputs: Any, sample: AttributionSample, level: float, **settings: Any) -> list[Row]:  # noqa: ARG001
    """Mean L2 radius, at alpha = 1 - level."""
    return [score_row("certified_radius", metrics.certified_radius(sample, **_terms(sample, level, settings)))]


def certified_share(model: Any, inputs: Any, sample: AttributionSample, level: float, **settings: Any) -> list[Row]:  # noqa: ARG001
    """Share of the features certified to a radius, at alpha = 1 - level."""
    return [score_row("certified_share", metrics.certified_share(sample, **_terms(sample, level, settings)))]


def region_score(model: Any, inputs: Any, sample: AttributionSample, level: float, **settings: Any) -> list[Row]:
    """The model's score of the significantly important region alone, at alpha = 1 - level."""
    terms = _terms(sample, level, {})
    fixed = terms_of_until(sample)
    threshold, split = (stats.jenks, None) if fixed is None else fixed
    important = sample.significance_map(threshold, split=split, **terms) == 1
    return [score_row("region_score", metrics.region_score(model, inputs, important, list(sample.target), **settings))]


def _terms(sample: AttributionSample, level: float, settings: Mapping[str, Any]) -> dict[str, Any]:
    stopping = sample.stopping
    own = {} if stopping is None or not stopping.tested else {"correction": stopping.correction}
    return {**own, **settings, "alpha": 1 - level}


def _by_rule(settings: Mapping[str, Any], rule: Until) -> bool:
    """Whether a measure decides by the thresholds of `until`."""
    return rule.undecided is not None and settings.get("threshold") is None and not settings.get("split")


def _correction(settings: Mapping[str, Any], rule: Until | None) -> str | None:
    return settings.get("correction", None if rule is None or rule.undecided is None else rule.correction)


def terms_told(measure: Measure, rule: Until | None) -> list[str]:
    """Threshold, correction and split of a measure that decides, in words."""
    threshold, split = measure.settings.get("threshold"), measure.settings.get("split")
    if threshold is None:
        threshold = stats.jenks if rule is None or rule.undecided is None else rule.threshold
    named = "natural breaks" if threshold is stats.jenks else getattr(threshold, "__name__", threshold)
    of_first = f" of the first {split} samples" if split else ""
    return [f"threshold {named}{of_first}", f"{_correction(measure.settings, rule) or 'no'} correction"]


def check_samples_suffice(study: Study) -> None:
    """Raise where there are, or may be, too few samples for what is asked of them, or where no noise allows it."""
    rule = study.rule
    if rule is not None and rule.max_seconds is not None:
        raise ValueError(
            "`n_samples`: figures of a study must not depend on how fast a machine is, so leave `max_seconds` out of "
            "`until` and write `max_samples=`"
        )
    fewest = study.sizes if rule is None else (RoundsUntil(rule, 1).soonest,)
    for measure in study.measures:
        if measure.decides:
            check_correction(_correction(measure.settings, rule), any_time=rule is not None)
        if measure.name.startswith("certified"):
            _check_certificate(measure, study)
    needs = [(needed, what) for level in study.levels for what, needed in _needed(study, level)]
    needed, what = max(needs, default=(0, ""))
    n = min(n for n in fewest if n is not None)
    if n < needed:
        _refuse(n, needed, what, rule)


def _needed(study: Study, level: float) -> Iterator[tuple[str, int]]:
    """What is asked of the samples at a level, and how many that takes."""
    any_time, at = study.rule is not None, f"at a confidence level of {level:g}"
    if "smoothed" in study.maps:
        yield f"smoothed maps {at}", samples_for_interval(level)
    for measure in study.measures:
        if measure.name == "interval_width":
            yield f"{measure.name} {at}", samples_for_interval(level, any_time=any_time)
        elif measure.decides:
            check_alpha(1 - level)
            if study.rule is not None and _by_rule(measure.settings, study.rule):
                _check_level_of_rule(measure, study.rule, level)
                continue  # it does not stop before it can decide
            correction = _correction(measure.settings, study.rule)
            split = measure.settings.get("split") or 0
            yield f"{measure.name} {at}", split + samples_needed(1 - level, correction, 1, any_time=any_time)


def _check_level_of_rule(measure: Measure, rule: Until, level: float) -> None:
    if round(1 - level, 12) < rule.alpha:
        raise ValueError(
            f"`n_samples` decides at alpha {rule.alpha:g}, and may stop too soon for {measure.name} at a confidence "
            f"level of {level:g}: write `until(..., alpha={1 - level:.6g})`"
        )


def _refuse(n: int, needed: int, what: str, rule: Until | None) -> None:
    if rule is None:
        raise ValueError(f"`n_samples` must be at least {needed} for {what}, got {n}")
    if rule.max_samples < needed:
        raise ValueError(f"`n_samples`: `max_samples` must be at least {needed} for {what}, got {rule.max_samples}")
    raise ValueError(
        f"`n_samples` may stop at {n} samples, and {what} needs {needed}: write `until(..., first={needed})`"
    )


def _check_certificate(measure: Measure, study: Study) -> None:
    for name, noise in study.noises.items():
        if gaussian_std(noise) is None:
            raise ValueError(
                f"`metrics`: {measure.name} needs Gaussian noise with one standard deviation, such as "
                f"metfa.noise.Gaussian(0.1), got `sampling[{name!r}]` {noise!r}"
            )
    threshold, split = measure.settings.get("threshold"), measure.settings.get("split")
    fixed = study.rule is not None and study.rule.undecided is not None
    if (threshold is None and (split or not fixed)) or (callable(threshold) and not split):
        raise ValueError(
            f"`metrics`: {measure.name} needs a threshold that does not depend on the samples that are tested: give "
            f"`threshold` a number, as in {{'{measure.name}': {{'threshold': 0.01}}}}, or a rule with `split`, or let "
            "`n_samples=metfa.until(undecided=...)` fix it"
        )
    if _correction(measure.settings, study.rule) not in CORRECTIONS:
        raise ValueError(
            f"`metrics`: {measure.name} takes the corrections {', '.join(map(repr, CORRECTIONS))}, got "
            f"{measure.settings['correction']!r}"
        )
