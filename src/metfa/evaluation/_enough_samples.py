"""Checks before a study draws samples: are there enough for its measures, and does its noise fit them?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa.evaluation._of_samples import alpha_at, correction_of
from metfa.noise.pixel_space import gaussian_std
from metfa.results.certified import CORRECTIONS
from metfa.results.corrections import check_alpha, check_correction
from metfa.results.decisions import samples_for_interval
from metfa.results.families import samples_needed
from metfa.results.terms import Terms
from metfa.results.until import Until
from metfa.sampling.rounds import RoundsUntil

if TYPE_CHECKING:
    from metfa.evaluation._measures import Measure
    from metfa.evaluation.study import Study

__all__ = ["check_enough_samples"]

STRICTER = (None, "closed-e-bh", "e-bh", "bonferroni")  # they hold at any time, each is stricter than those before


def check_enough_samples(study: Study) -> None:
    """Raise if there are, or may be, too few samples for a measure, or if the noise does not allow it."""
    rule = study.rule
    if rule is not None:
        _check_rule(rule)
    fewest = study.sizes if rule is None else (RoundsUntil(rule, 1).soonest,)
    for measure in study.measures:
        if measure.name == "rule_met" and rule is None:
            raise ValueError("`metrics`: rule_met needs a rule, as in `n_samples=metfa.Until(undecided=0.05)`")
        if measure.decides:
            check_correction(correction_of(measure.settings, rule), any_time=rule is not None)
            if rule is not None and _by_rule(measure.settings, rule):
                _check_terms_of_rule(measure, rule, study.levels)
        if measure.name.startswith("certified"):
            _check_certificate(measure, study)
    needs = [(needed, what) for level in study.levels for what, needed in _needed(study, level)]
    needed, what = max(needs, default=(0, ""))
    n = min(n for n in fewest if n is not None)
    if n < needed:
        _refuse(n, needed, what, rule)


def _by_rule(settings: Mapping[str, Any], rule: Until) -> bool:
    """Whether a measure decides by the thresholds of `Until`."""
    return rule.undecided is not None and settings.get("threshold") is None


def _check_rule(rule: Until) -> None:
    if rule.max_seconds is not None:
        raise ValueError(
            "`n_samples`: figures of a study must not depend on the speed of a machine: leave `max_seconds` out of "
            "`Until` and write `max_samples=`"
        )
    if np.ndim(rule.threshold):
        raise ValueError(
            "`n_samples`: a study explains one input at a time, so `threshold` of `Until` must be one number or a "
            f"rule, got an array of shape {np.shape(rule.threshold)}"
        )


def _needed(study: Study, level: float) -> Iterator[tuple[str, int]]:
    """What needs samples at a level, and how many it needs."""
    any_time, at = study.rule is not None, f"at a confidence level of {level:g}"
    if "smoothed" in study.maps:
        yield f"smoothed maps {at}", samples_for_interval(level)
    for measure in study.measures:
        if measure.name == "interval_width":
            yield f"{measure.name} {at}", samples_for_interval(level, any_time=any_time)
        elif measure.decides:
            check_alpha(alpha_at(level))
            if study.rule is not None and _by_rule(measure.settings, study.rule):
                continue  # the rule does not stop before it can decide
            correction = correction_of(measure.settings, study.rule)
            split = measure.settings.get("split") or 0
            needed = samples_needed(Terms(alpha=alpha_at(level), correction=correction), 1, any_time=any_time)
            yield f"{measure.name} {at}", split + needed


def _check_terms_of_rule(measure: Measure, rule: Until, levels: Sequence[float]) -> None:
    """Raise if a measure has stricter tests than the rule: then the rule may stop too soon for it."""
    if measure.settings.get("split") is not None:
        raise ValueError(
            f"`metrics`: `split` of {measure.name} needs a `threshold`; without one, the threshold is that of the "
            "rule, and its first samples are left out already: leave `split` out"
        )
    correction, level = correction_of(measure.settings, rule), max(levels)
    if STRICTER.index(correction) > STRICTER.index(rule.correction):
        raise ValueError(
            f"`n_samples` decides with the correction {rule.correction!r}, and may stop too soon for {measure.name} "
            f"with {correction!r}: write `Until(..., correction={correction!r})`"
        )
    if alpha_at(level) < rule.alpha:
        raise ValueError(
            f"`n_samples` decides at alpha {rule.alpha:g}, and may stop too soon for {measure.name} at a confidence "
            f"level of {level:g}: write `Until(..., alpha={1 - level:.6g})`"
        )


def _refuse(n: int, needed: int, what: str, rule: Until | None) -> None:
    if rule is None:
        raise ValueError(f"`n_samples` must be at least {needed} for {what}, got {n}")
    if rule.max_samples < needed:
        raise ValueError(f"`n_samples`: `max_samples` must be at least {needed} for {what}, got {rule.max_samples}")
    raise ValueError(
        f"`n_samples` may stop at {n} samples, and {what} needs {needed}: write `Until(..., first={needed})`"
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
            "`n_samples=metfa.Until(undecided=...)` fix it"
        )
    if correction_of(measure.settings, study.rule) not in CORRECTIONS:
        raise ValueError(
            f"`metrics`: {measure.name} takes the corrections {', '.join(map(repr, CORRECTIONS))}, got "
            f"{measure.settings['correction']!r}"
        )
