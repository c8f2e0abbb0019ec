"""What changed in the explanations of many inputs, found as one family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa import stats
from metfa.results.cautions import class_in_words, predicted
from metfa.results.changes import Change, Changes
from metfa.results.decisions import TooFewSamplesError
from metfa.results.equivalence import changed_together, unchanged
from metfa.results.joining import equal
from metfa.results.terms import Terms
from metfa.results.thresholds import sides, zone_of

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample

__all__ = ["changes_in"]

LISTED = 10_000  # changes that are kept one by one
MADE = ("explainer", "noise", "rng", "started", "versions")


def changes_in(
    differences: Mapping[str, AttributionSample],
    delta: float = 0.0,
    *,
    alpha: float | None = None,
    correction: str | None = None,
    confidence_level: float = 0.95,
) -> Changes:
    """What changed in several results of paired differences, all as one family.

    Parameters
    ----------
    differences : dict of str to AttributionSample
        Differences of one input each (`metfa.compare`), by its name; features may differ from input to input.
    delta, alpha, correction
        As for `AttributionSample.changed`, over all results together.
    confidence_level : float
        Level of the intervals, for all differences together.

    Raises
    ------
    TooFewSamplesError
        If nothing could be shown with so few samples.
    ValueError
        If there are no results, or they have different numbers of samples.
    """
    if not differences:
        raise ValueError("`differences` is empty: there is nothing to compare")
    samples = list(differences.values())
    marks, terms = changed_together(samples, delta, alpha, correction)
    for sample in samples:
        sample._look()
    family = sum(mark.size for mark in marks)
    n = samples[0].n_samples
    ranks = _ranks(n, confidence_level, family, any_time=any(sample.any_time for sample in samples))
    zone, near_zero = (None, None) if delta else _rounding(samples)
    found = [_found(name, one, mark, ranks) for (name, one), mark in zip(differences.items(), marks, strict=True)]
    changes = [change for of_input in found for change in of_input]
    if len(changes) > LISTED:
        least = sorted((abs(change.difference) for change in changes), reverse=True)[LISTED - 1]
        changes = [change for change in changes if abs(change.difference) >= least][:LISTED]
    return Changes(
        delta=float(delta),
        alpha=terms.alpha,
        correction=terms.correction,
        family=family,
        inputs=tuple(differences),
        n_samples=n,
        number=int(sum(np.count_nonzero(mark) for mark in marks)),
        changes=tuple(changes),
        within=_within(samples, delta, terms),
        zone=zone,
        near_zero=near_zero,
        confidence_level=confidence_level,
        other_predictions=tuple(
            (name, *other) for name, sample in differences.items() if (other := _other_prediction(sample)) is not None
        ),
        other_targets=tuple(
            (name, *other) for name, sample in differences.items() if (other := _other_target(sample)) is not None
        ),
        equal=tuple(name for name, sample in differences.items() if not sample.values.any()),
        untested=tuple(name for name, sample in differences.items() if sample.unmoved.any()),
        noun=_noun(samples[0]),
        scale=samples[0].provenance["compared"]["scale"],
        before=_made(samples[0], 0),
        after=_made(samples[0], 1),
    )


def _noun(sample: AttributionSample) -> str:
    return "word" if isinstance(sample.inputs, list) and sample.regions is None else sample.noun


def _ranks(n: int, level: float, family: int, *, any_time: bool) -> stats.Ranks | None:
    """Order statistics of intervals that hold together; None if there are too few samples."""
    ranks_of = stats.sequence_ranks if any_time else stats.median_ranks
    try:
        return ranks_of(n, level, n_features=family)
    except ValueError:
        ranks_of(10**4, level)  # a wrong level is an error
        return None


def _found(name: str, sample: AttributionSample, marks: np.ndarray, ranks: stats.Ranks | None) -> list[Change]:
    places = np.argwhere(marks)
    if not len(places):
        return []
    values = sample.values[(slice(None), *places.T)]
    interval = None if ranks is None else stats.median_interval(values, ranks=ranks)
    more, less = sample.terms().sides or ("more", "less")
    return [
        Change(
            input=name,
            feature=_feature(sample, place[1:]),
            direction=more if marks[tuple(place)] > 0 else less,
            difference=float(middle),
            interval=None if interval is None else (float(interval.low[i]), float(interval.high[i])),
        )
        for i, (place, middle) in enumerate(zip(places, np.median(values, axis=0), strict=True))
    ]


def _feature(sample: AttributionSample, place: np.ndarray) -> str:
    if sample.feature_names is not None:
        name = sample.feature_names[place[-1]]
        if sample.feature_names.count(name) == 1:
            return name
        return f"{name} ({_noun(sample)} {place[-1] + 1} of {len(sample.feature_names)})"
    return f"{sample.noun} {', '.join(map(str, place.tolist()))}"


def _rounding(samples: list[AttributionSample]) -> tuple[tuple[float, float] | None, int | None]:
    """How near to 0 a difference counts for neither side, the least and most of all inputs; and how many lie there."""
    zones = np.concatenate([zone_of(np.zeros(1), sample.unit, sample.values).ravel() for sample in samples])
    if not zones.any():
        return None, None
    near = 0
    for sample in samples:
        above, below = sides(sample.values, np.zeros(1), sample.unit)
        moved = ~sample.unmoved.reshape(-1, *[1] * len(sample.feature_shape))
        near += int(np.count_nonzero((above + below < sample.n_samples / 2) & moved))
    return (float(zones.min()), float(zones.max())), near


def _within(samples: list[AttributionSample], delta: float, terms: Terms) -> int | None:
    if not delta:
        return None
    try:
        return int(sum(unchanged(sample, delta, terms.alpha, None).sum() for sample in samples))
    except TooFewSamplesError:
        return None


def _other_prediction(sample: AttributionSample) -> tuple[int, int] | None:
    """Classes that are predicted for the clean input before and after, where they differ."""
    classes = [predicted(part.scores) for part in sample.pair or ()]
    if len(classes) != 2 or classes[0] is None or classes[1] is None:
        return None
    before, after = int(classes[0][0]), int(classes[1][0])
    return None if before == after else (before, after)


def _other_target(sample: AttributionSample) -> tuple[str, str] | None:
    """What was explained before and after, in words, where it is not the same; of a contrast that is asked for."""
    if sample.pair is None or sample.provenance["compared"].get("word") == "for":
        return None
    before, after = sample.pair
    if equal(before.target[0], after.target[0]):
        return None
    return str(class_in_words(before, before.target[0])), str(class_in_words(after, after.target[0]))


def _made(sample: AttributionSample, part: int) -> dict[str, Any]:
    provenance = sample.pair[part].provenance if sample.pair is not None else {}
    return {name: provenance[name] for name in MADE if name in provenance}
