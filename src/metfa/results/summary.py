"""The figures to read first: what is significant, how sure that is, and what may be wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from metfa import stats
from metfa.results.decisions import Decision, kinds_at
from metfa.results.sample import AttributionSample

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True)
class Summary:
    """Summary of one input's significance map and intervals.

    Attributes
    ----------
    n_samples, n_features : int
        N, and the number of features tested.
    stopped : str or None
        How `metfa.Until` found N; None where N was fixed beforehand.
    split : int
        How many of the first samples were left out of the tests.
    threshold : float or None
        Threshold of the test; nan where none exists (constant attributions), None where it differs by feature.
    alpha : float
        Level of the decisions.
    correction : str or None
        Correction for many features.
    above, below, undecided : float
        Shares of the features, which add to 1: the median is decided to lie above the threshold, below it, or neither.
    expected_false_marks : float or None
        Features to expect with a false mark if every median lies at the threshold; None with a correction, and after
        `metfa.Until`.
    level_asked : float
        Level that was asked for the intervals.
    too_few : str or None
        Why there are no intervals, where N is too small for the level asked.
    confidence_level : float or None
        Exact level of the intervals (after `metfa.Until` the level that holds at any time); None without intervals.
    mean_interval_width : float or None
        Mean width of the intervals over the features.
    flip_rate : float or None
        Share of noisy inputs whose predicted class differs from the clean one.
    """

    n_samples: int
    n_features: int
    stopped: str | None
    split: int
    threshold: float | None
    alpha: float
    correction: str | None
    above: float
    below: float
    undecided: float
    expected_false_marks: float | None
    level_asked: float
    too_few: str | None
    confidence_level: float | None
    mean_interval_width: float | None
    flip_rate: float | None

    def __str__(self) -> str:
        return "\n".join(f"{name + ':':<22}{text}" for name, text in self.lines())

    def lines(self) -> list[tuple[str, str]]:
        """Names and texts of the summary's lines."""
        kept = f", {self.split} of them for the threshold alone" if self.split else ""
        at = "one for each feature" if self.threshold is None else f"{self.threshold:.4g}"
        if self.threshold is not None and math.isnan(self.threshold):
            at = "none exists: all scores are equal"
        kinds = kinds_at(self.threshold)
        lines = [
            ("samples", f"{self.n_samples} of each feature's score{kept}; {self.n_features:,} features"),
            (kinds[1], f"{self.above:7.2%} (median above the threshold, {at})"),
            (kinds[-1], f"{self.below:7.2%} (median below it)"),
            (kinds[0], f"{self.undecided:7.2%}"),
            *([] if self.stopped is None else [("stopped", self.stopped)]),
            ("false marks", self._errors()),
        ]
        if self.too_few is not None:
            intervals = f"none: {self.too_few}"
        else:
            coverage = f"exact coverage {self.confidence_level:.2%}"
            if self.stopped is not None:
                coverage = f"coverage of at least {self.confidence_level:.2%} at any time"
            intervals = f"{coverage} for each median, mean width {self.mean_interval_width:.3g}"
        lines.append(("intervals", intervals))
        if self.flip_rate is not None:
            lines.append(("prediction flips", f"{self.flip_rate:.0%} of the noisy inputs"))
        return lines

    def _errors(self) -> str:
        if self.correction == "bonferroni":
            return f"any at all with probability at most {self.alpha:g} (bonferroni over all features)"
        if self.correction == "holm":
            return f"any feature at the threshold marked with probability at most {self.alpha:g} (holm)"
        if self.correction is not None:
            condition = " under positive dependence" if self.correction == "bh" else " under any dependence"
            condition += " and whenever sampling stops" if self.correction == "e-bh" else ""
            return f"at most {100 * self.alpha:g}% of the marks on average{condition} ({self.correction})"
        expected = self.expected_false_marks or 0.0
        if self.stopped is not None:
            level = f"with probability at most {self.alpha:g}"
            return f"each feature on each side {level}, whenever sampling stops; uncorrected"
        return (
            f"up to {expected:,.0f} features expected ({expected / self.n_features:.1%}) if every median lay at the "
            f"threshold: alpha {self.alpha:g} a side, uncorrected"
        )


def summarise(sample: AttributionSample, decision: Decision, confidence_level: float) -> tuple[Summary, ...]:
    """Summary of each input of a sample: of a decision, and of intervals of a level."""
    marks, terms = decision.marks, decision.terms
    batch = len(marks)
    by_input = decision.thresholds.size in (1, batch)
    shown = np.broadcast_to(decision.thresholds.reshape(-1), (batch,)) if by_input else None
    level = width = None
    too_few = sample.too_few_for(confidence_level)
    if too_few is None:
        interval = sample.confidence_interval(confidence_level)
        level = interval.confidence_level
        width = np.subtract(interval.high, interval.low, dtype=np.float64).reshape(batch, -1).mean(axis=1)
    false_marks = None
    if terms.correction is None and not decision.any_time:
        false_marks = stats.expected_false_marks(sample.n_samples - terms.split, terms.alpha, sample.n_features)
    return tuple(
        Summary(
            n_samples=sample.n_samples,
            n_features=sample.n_features,
            stopped=sample.grown if sample.stopping is None else str(sample.stopping.of_input(row)),
            split=terms.split,
            threshold=None if shown is None else float(shown[row]),
            alpha=terms.alpha,
            correction=terms.correction,
            above=float((marks[row] == 1).mean()),
            below=float((marks[row] == -1).mean()),
            undecided=float((marks[row] == 0).mean()),
            expected_false_marks=false_marks,
            level_asked=confidence_level,
            too_few=too_few,
            confidence_level=level,
            mean_interval_width=None if width is None else float(width[row]),
            flip_rate=None if sample.flip_rate is None else float(sample.flip_rate[row]),
        )
        for row in range(batch)
    )
