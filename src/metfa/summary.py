"""The figures a person reads first: what is significant, how sure the statement is, what it may get wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa import stats
from metfa.result import AttributionSample

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True)
class Summary:
    """Summary of one input's significance map and intervals.

    Attributes
    ----------
    n_samples, n_features : int
        N, and the number of features tested.
    threshold : float
        Threshold of the test; nan where none exists (constant attributions), None where it differs by feature.
    alpha : float
        Level of the decisions.
    correction : str or None
        Correction for many features.
    important, unimportant, undecided : float
        Shares of the features, adding to 1.
    expected_false_marks : float or None
        Features marked falsely where every median lies at the threshold; None with a correction.
    confidence_level : float or None
        Exact level of the intervals; None where N is too small for one.
    mean_interval_width : float or None
        Mean width of the intervals over the features.
    flip_rate : float or None
        Share of noisy inputs whose predicted class differs from the clean one.
    """

    n_samples: int
    n_features: int
    threshold: float | None
    alpha: float
    correction: str | None
    important: float
    unimportant: float
    undecided: float
    expected_false_marks: float | None
    confidence_level: float | None
    mean_interval_width: float | None
    flip_rate: float | None

    def __str__(self) -> str:
        return "\n".join(f"{name + ':':<22}{text}" for name, text in self.lines())

    def lines(self) -> list[tuple[str, str]]:
        """Names and texts of the summary's lines."""
        at = "by feature" if self.threshold is None else f"{self.threshold:.4g}"
        lines = [
            ("samples", f"{self.n_samples} of each feature's score, {self.n_features:,} features"),
            ("important", f"{self.important:7.2%} (median above the threshold {at})"),
            ("unimportant", f"{self.unimportant:7.2%} (median below it)"),
            ("undecided", f"{self.undecided:7.2%}"),
            ("false marks", self._errors()),
        ]
        if self.confidence_level is None:
            needed = stats.min_samples(0.05)
            lines.append(("intervals", f"none: {self.n_samples} samples are too few, 95 % needs {needed}"))
        else:
            lines.append(
                (
                    "intervals",
                    f"exact coverage {self.confidence_level:.2%} for each median, "
                    f"mean width {self.mean_interval_width:.3g}",
                )
            )
        if self.flip_rate is not None:
            lines.append(("prediction flips", f"{self.flip_rate:.0%} of the noisy inputs"))
        return lines

    def _errors(self) -> str:
        if self.correction in ("bonferroni", "holm"):
            return f"any at all with probability at most {self.alpha:g} ({self.correction} over all features)"
        if self.correction is not None:
            condition = " under positive dependence" if self.correction == "bh" else " under any dependence"
            return f"at most {self.alpha:.0%} of the marks on average{condition} ({self.correction})"
        expected = self.expected_false_marks or 0.0
        return (
            f"up to {expected:,.0f} features expected ({expected / self.n_features:.1%}) if every median lay at the "
            f"threshold: alpha {self.alpha:g} a side, uncorrected"
        )


def summarise(
    sample: AttributionSample,
    threshold: Any = stats.jenks,
    *,
    alpha: float = 0.05,
    correction: str | None = None,
    confidence_level: float = 0.95,
    split: int | None = None,
) -> tuple[Summary, ...]:
    """Summary of every input of a sample.

    Parameters
    ----------
    sample : AttributionSample
        What `metfa.explain` returned.
    threshold, alpha, correction, split
        As for `AttributionSample.significance_map`.
    confidence_level : float
        As for `AttributionSample.confidence_interval`.

    Returns
    -------
    tuple of Summary
        One for each input.
    """
    held_out = sample._split(threshold, split)
    heights = sample.threshold(threshold, split=held_out) if callable(threshold) else threshold
    marks = (
        sample.significance_map(heights, alpha=alpha, correction=correction)
        if not held_out
        else (sample.significance_map(threshold, alpha=alpha, correction=correction, split=held_out))
    )
    per_input = np.asarray(heights, dtype=np.float64)
    batch = sample.values.shape[1]
    if per_input.size in (1, batch):
        shown: list[float | None] = [float(height) for height in np.broadcast_to(per_input.reshape(-1), (batch,))]
    else:
        shown = [None] * batch
    width: Any = [None] * batch
    level = None
    if sample.n_samples >= stats.min_samples(1 - confidence_level):
        interval = sample.confidence_interval(confidence_level)
        level = interval.confidence_level
        width = (interval.high - interval.low).reshape(batch, -1).mean(axis=1, dtype=np.float64)
    tested = sample.n_samples - held_out
    false_marks = None if correction else stats.expected_false_marks(tested, alpha, sample.n_features)
    return tuple(
        Summary(
            n_samples=sample.n_samples,
            n_features=sample.n_features,
            threshold=shown[row],
            alpha=alpha,
            correction=correction,
            important=float((marks[row] == 1).mean()),
            unimportant=float((marks[row] == -1).mean()),
            undecided=float((marks[row] == 0).mean()),
            expected_false_marks=false_marks,
            confidence_level=level,
            mean_interval_width=None if level is None else float(width[row]),
            flip_rate=None if sample.flip_rate is None else float(sample.flip_rate[row]),
        )
        for row in range(batch)
    )
