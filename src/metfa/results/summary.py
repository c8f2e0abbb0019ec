"""The figures to read first: what is significant, how sure that is, and what may be wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from metfa import stats
from metfa._base.percents import counted, percent
from metfa.results.cautions import (
    FLIPS_FROM,
    about_near_zero,
    about_outside,
    cautions,
    explained,
    heading_of,
    left_out,
    notes_of,
    nothing_stands_out,
    outside,
    place,
    trimming,
)
from metfa.results.compared import Compared
from metfa.results.decisions import Decision, kinds_at
from metfa.results.pairs import MOST_FEATURES
from metfa.results.population import Population
from metfa.results.promises import promise
from metfa.results.ranking import in_words
from metfa.results.rules import use_of_split
from metfa.results.sample import AttributionSample
from metfa.results.scores import interval_of, why_no_ends
from metfa.results.terms import Terms
from metfa.results.thresholds import UNMOVED, zone_of

__all__ = ["Summary", "false_marks_of", "summarise"]


@dataclass(frozen=True)
class Summary:
    """Summary of one input's significance map and intervals.

    Attributes
    ----------
    place : str or None
        Which input of the batch it is; None if it is the only one.
    explained : str or None
        The class or the answer that was explained, and the predicted class where it is another.
    cautions : tuple of str
        What must not be missed, such as a noise that changes the prediction; views show it in the title. Or why no
        feature stands out.
    n_samples, n_features : int
        N, and the number of features tested.
    stopped : str or None
        How `metfa.Until` found N; None where N was fixed beforehand.
    split : int
        How many of the first samples were left out of the tests.
    threshold : float or None
        Threshold of the test; nan where none exists, None where it differs by feature.
    nothing : str or None
        Why no feature stands out, so that all are undecided (`Decision.nothing`); None if some may.
    alpha : float
        Level of the decisions.
    correction : str or None
        Correction for many features.
    above, below, undecided : float
        Shares of the features, which add to 1: the median is decided to lie above the threshold, below it, or neither.
    near_zero, zone : int, float or None
        Undecided features with most scores within `zone` of 0, too near for a sign; None where no threshold is 0.
    expected_false_marks : float or None
        Features to expect with a false mark if every median lies at the threshold, 0 where nothing stands out; None
        with a correction, and after `metfa.Until`.
    too_few : str or None
        Why there are no intervals: N is too small for the level asked, or all samples are the same.
    confidence_level : float or None
        Exact level of the intervals (any-time after `metfa.Until`; asymptotic for contributions); None without any.
    mean_interval_width : float or None
        Mean width of the intervals over the features.
    outside : int or None
        Features whose score without noise (`AttributionSample.vanilla`) lies outside their own interval, by more than a
        ten-thousandth of the unit (`Terms.unit`): it contradicts the scores under the noise. None without intervals.
    left_out : int or None
        How many samples of each feature the smoothed map leaves out on each side; None without intervals.
    flip_rate : float or None
        Share of noisy inputs whose predicted class differs from the clean one.
    noun, sample_noun : str
        What a feature is called ("feature", "region", "pair" or "source"), and a sample ("sample", "row" or "model").
    population : Population or None
        What the samples are, where they are rows or models.
    ranking : str or None
        Of a population of at most 100 features: which rank above which, see `AttributionSample.ranking`.
    sides : (str, str) or None
        What lies above and below the threshold, where this has names of its own (`Terms.sides`).
    terms : Terms
        Terms of the decision, which say what is promised about false marks.
    compared : Compared or None
        What the scores are differences of (`metfa.compare`); None for plain scores.
    notes : tuple of (str, str)
        What the explainer says of its results, each with a short name.
    """

    place: str | None
    explained: str | None
    cautions: tuple[str, ...]
    n_samples: int
    n_features: int
    stopped: str | None
    split: int
    threshold: float | None
    nothing: str | None
    alpha: float
    correction: str | None
    above: float
    below: float
    undecided: float
    near_zero: int
    zone: float | None
    expected_false_marks: float | None
    too_few: str | None
    confidence_level: float | None
    mean_interval_width: float | None
    outside: int | None
    left_out: int | None
    flip_rate: float | None
    noun: str = "feature"
    sample_noun: str = "sample"
    population: Population | None = None
    ranking: str | None = None
    sides: tuple[str, str] | None = None
    terms: Terms = field(default_factory=Terms, repr=False)
    compared: Compared | None = None
    notes: tuple[tuple[str, str], ...] = ()

    @property
    def kinds(self) -> dict[int, str]:
        """Names of the features with each mark."""
        return kinds_at(self.threshold, self.sides, self.terms.sides_at)

    def __str__(self) -> str:
        lines = self.lines()
        width = max(22, *(len(name) + 2 for name, _ in lines))
        return "\n".join(f"{name + ':':<{width}}{text}" for name, text in lines)

    def lines(self) -> list[tuple[str, str]]:
        """Names and texts of the summary's lines."""
        kept = f", {self.split} of them {use_of_split(self.terms.threshold)}" if self.split else ""
        at = f"one for each {self.noun}" if self.threshold is None else f"{self.threshold:.4g}"
        if self.threshold is not None and math.isnan(self.threshold):
            at = "none exists"
        kinds, quantity, both = self.kinds, self.quantity, self.compared
        about_0 = both is not None and self.threshold == 0
        above = f"above {at if about_0 else f'the threshold, {at}'}"
        median = "median" if both is None else "median difference"
        lies = f"{median} {above}", f"{median} below it"
        if self.terms.of_effects:
            lies = f"more draws {above}, than chance explains", "more below it than chance explains"
        verb = "is decided" if self.nothing == UNMOVED else "stands out"
        lines = [
            *(("caution", text) for text in self.cautions),
            *([] if self.place is None else [("row", self.place)]),
            *([] if self.explained is None else [(heading_of(self.explained), self.explained)]),
            *([] if both is None else [("difference", both.about)]),
            *self._samples(kept),
            *self.notes,
            *([] if self.nothing is None else [(f"nothing {verb}", self.nothing)]),
            (kinds[1], f"{percent(self.above, 2):>7} ({lies[0]})"),
            (kinds[-1], f"{percent(self.below, 2):>7} ({lies[1]})"),
            (kinds[0], f"{percent(self.undecided, 2):>7}{' (not shown to differ)' * about_0}"),
            *([("no sign", about_near_zero(self.near_zero, self.zone, self.noun, quantity))] if self.near_zero else []),
            *([] if self.stopped is None else [("stopped", self.stopped)]),
            ("false marks", false_marks_of(self, self.terms, kinds)),
            ("intervals", self._intervals()),
        ]
        if self.outside is not None:
            lines.append(("contradicted", about_outside(self.outside, self.n_features, self.noun, quantity)))
        if self.left_out is not None:
            lines.append(("smoothed map", self._averaged(self.left_out)))
        if self.flip_rate is not None:
            lines.append(("prediction flips", f"{percent(self.flip_rate, 0)} of the noisy inputs"))
        if both is not None and both.flips:
            lines.append(("prediction flips", f"{both.flipped} of the noisy inputs"))
        if self.ranking is not None:
            lines.append(("ranking", self.ranking))
        return lines

    def _samples(self, kept: str) -> list[tuple[str, str]]:
        """What the samples are, and what every statement is about."""
        features = counted(self.n_features, self.noun)
        if self.population is None:
            return [("samples", f"{self.n_samples} of each {self.noun}'s {self.quantity}{kept}; {features}")]
        each = f"{self.n_samples:,}, of each {self.population.number}{kept}; {features}"
        return [(f"{self.sample_noun}s", each), ("about", self.population.about)]

    def _averaged(self, left_out: int) -> str:
        """What the smoothed map is the mean of."""
        of = f"{self.n_samples} {self.sample_noun if self.compared is None else 'difference'}s of each {self.noun}"
        which = f"the {self.n_samples - 2 * left_out} middle ones of" if left_out else "all"
        return f"mean of {which} {of}, {trimming(left_out)}"

    @property
    def quantity(self) -> str:
        """What a sample of a feature is: its "score", its "difference", or a source's "contribution"."""
        plain = "contribution" if self.terms.of_effects else "score"
        return plain if self.compared is None else "difference"

    def _intervals(self) -> str:
        if self.too_few is not None or self.confidence_level is None:
            return f"none: {self.too_few}"
        level = percent(self.confidence_level, 2)
        if self.terms.of_effects:
            return f"of the mean contribution, {level}, asymptotic; mean width {self.mean_interval_width:.3g}"
        covered = f"at least {level}, whenever sampling stops"
        if self.stopped is None:
            covered = f"{level}, more where {self.quantity}s tie"
        held = "its median" if self.compared is None else "its median difference"
        return f"each holds {held} with probability {covered}; mean width {self.mean_interval_width:.3g}"


def false_marks_of(summary: Summary, terms: Terms, kinds: Mapping[int, str]) -> str:
    """What these terms promise about false marks, with names for the marks."""
    if summary.nothing is not None:
        return f"no {summary.noun} is marked, and so none falsely"
    said = promise(
        terms,
        summary.n_features,
        expected=summary.expected_false_marks,
        kinds=kinds,
        unproven=False,  # the level says it
        noun=summary.noun,
    )
    return f"{said} ({terms.level})"


def summarise(
    sample: AttributionSample, decision: Decision, confidence_level: float, flips_from: float = FLIPS_FROM,
    interval: stats.ConfidenceInterval | None = None,
) -> tuple[Summary, ...]:  # fmt: skip
    """Summary of each input of a sample: of a decision, and of intervals of a level, which may be given."""
    marks, terms = decision.marks, decision.terms
    batch = len(marks)
    shown = np.broadcast_to(decision.thresholds.flat, (batch,)) if decision.thresholds.size in (1, batch) else None
    level = width = contradicted = trimmed = None
    few = sample.population is not None and not terms.of_differences and 2 <= sample.n_features <= MOST_FEATURES
    ranked = [in_words(sample, row) if few else None for row in range(batch)]
    interval = interval_of(sample, confidence_level) if interval is None else interval
    too_few = None if interval is not None else why_no_ends(sample, confidence_level)
    if interval is not None:
        level = interval.confidence_level
        width = np.subtract(interval.high, interval.low, dtype=np.float64).reshape(batch, -1).mean(axis=1)
    if interval is not None and not sample.of_effects:
        trimmed = left_out(sample, confidence_level)
        if sample.vanilla is not None:
            contradicted = outside(sample, interval).reshape(batch, -1).sum(axis=1)
    false_marks = None
    if terms.correction is None and not decision.any_time:
        false_marks = stats.expected_false_marks(sample.n_samples - terms.split, terms.alpha, sample.n_features)
    zones = np.broadcast_to(zone_of(decision.thresholds, terms.unit, sample.values), marks.shape)
    zones = zones.reshape(batch, -1).max(axis=1, initial=0)
    near_zero = (decision.near_zero & (marks == 0)).reshape(batch, -1).sum(axis=1)
    return tuple(
        Summary(
            place=place(sample, row),
            explained=explained(sample, row),
            cautions=(*cautions(sample, row, flips_from), *nothing_stands_out(decision.nothing, row, sample.noun)),
            n_samples=sample.n_samples,
            n_features=sample.n_features,
            stopped=sample.grown if sample.stopping is None else str(sample.stopping.of_input(row)),
            split=terms.split,
            threshold=None if shown is None else float(shown[row]),
            nothing=decision.nothing[row],
            alpha=terms.alpha,
            correction=terms.correction,
            above=float((marks[row] == 1).mean()),
            below=float((marks[row] == -1).mean()),
            undecided=float((marks[row] == 0).mean()),
            near_zero=0 if decision.nothing[row] is not None else int(near_zero[row]),
            zone=float(zones[row]) or None,
            expected_false_marks=0.0 if false_marks is not None and decision.nothing[row] is not None else false_marks,
            too_few=UNMOVED if sample.unmoved[row] else too_few,
            confidence_level=None if sample.unmoved[row] else level,
            mean_interval_width=None if width is None or sample.unmoved[row] else float(width[row]),
            outside=None if contradicted is None or sample.unmoved[row] else int(contradicted[row]),
            left_out=trimmed,
            flip_rate=None if sample.flip_rate is None else float(sample.flip_rate[row]),
            noun=sample.noun,
            sample_noun=sample.sample_noun,
            population=sample.population,
            ranking=ranked[row],
            sides=terms.sides,
            terms=terms,
            compared=Compared.of(sample, row),
            notes=notes_of(sample),
        )
        for row in range(batch)
    )
