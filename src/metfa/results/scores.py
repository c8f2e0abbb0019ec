"""The numbers that bars, tables and texts show for the features of inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from metfa._base.percents import percent
from metfa.results.cautions import left_out, outside, trimming
from metfa.stats import median_ranks, sorted_once

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample
    from metfa.stats import ConfidenceInterval

__all__ = ["Scores", "interval_and_smoothed", "interval_of", "values_of_features", "why_no_ends"]


@dataclass(frozen=True)
class Scores:
    r"""One number for each feature: smoothed scores, or medians if there are too few samples; means of effects.

    Attributes
    ----------
    values : ndarray
        The scores, float64: (batch, \*features), or of one input (\*features), as all arrays here.
    called : str
        What they are.
    vanilla : ndarray or None
        Scores without noise; None for a population.
    ends : tuple of ndarray, or None
        Lower and upper ends of the intervals; None with too few samples.
    level : float
        Level of the intervals that was reached; 0 without any.
    kind : str
        "any-time " where the intervals hold at any time, else nothing.
    outside : ndarray of bool
        Whether the score without noise lies beyond the ends, by more than rounding.
    quantity : str
        What a number is: a "score", a "difference" (`metfa.compare`), or a "mean contribution" (`Terms.of_effects`).
    """

    values: np.ndarray
    called: str
    vanilla: np.ndarray | None
    ends: tuple[np.ndarray, np.ndarray] | None
    level: float
    kind: str
    outside: np.ndarray
    quantity: str

    @classmethod
    def of(cls, sample: AttributionSample, confidence_level: float) -> Scores:
        """Those of the first input."""
        found = cls.of_all(sample, confidence_level)
        return replace(
            found,
            values=found.values[0],
            vanilla=None if found.vanilla is None else found.vanilla[0],
            ends=None if found.ends is None else (found.ends[0][0], found.ends[1][0]),
            outside=found.outside[0],
        )

    @classmethod
    def of_all(cls, sample: AttributionSample, confidence_level: float) -> Scores:
        """Those of all inputs."""
        if sample.of_effects:
            return cls._of_effects(sample, confidence_level)
        vanilla, noun = sample.vanilla, sample.sample_noun
        vanilla = None if vanilla is None else vanilla.astype(np.float64)
        kind = "any-time " * sample.any_time
        quantity = "score" if sample.pair is None else "difference"
        interval, smoothed, _ = interval_and_smoothed(sample, confidence_level)
        if interval is None or smoothed is None:
            called = f"the only {noun}" if sample.n_samples == 1 else f"median of {sample.n_samples:,} {noun}s"
            medians = sample.median().astype(np.float64)
            return cls(medians, called, vanilla, None, 0.0, kind, np.zeros(medians.shape, bool), quantity)
        ends = interval.low.astype(np.float64), interval.high.astype(np.float64)
        values = smoothed.astype(np.float64)
        called = f"smoothed over {sample.n_samples:,} {noun}s, {trimming(left_out(sample, confidence_level))}"
        beyond = np.zeros(values.shape, bool) if vanilla is None else outside(sample, interval)
        return cls(values, called, vanilla, ends, interval.confidence_level, kind, beyond, quantity)

    @classmethod
    def _of_effects(cls, sample: AttributionSample, confidence_level: float) -> Scores:
        """Means, of which there is an asymptotic interval if the number of samples was fixed; the clean map is none."""
        means, n = sample.mean().astype(np.float64), sample.n_samples
        interval = interval_of(sample, confidence_level)
        ends = None if interval is None else (interval.low.astype(np.float64), interval.high.astype(np.float64))
        called, none = f"mean of {n:,} draws", np.zeros(means.shape, bool)
        return cls(means, called, None, ends, confidence_level, "asymptotic ", none, "mean contribution")

    @property
    def median(self) -> str:
        """What the ends are about."""
        if self.quantity == "mean contribution":
            return "mean"
        return "median" if self.quantity == "score" else f"median {self.quantity}"

    def intervals(self, places: int) -> str:
        """What the ends are, with so many digits of the level in percent."""
        return f"{self.kind}{percent(self.level, places)} interval"


def interval_of(sample: AttributionSample, confidence_level: float) -> ConfidenceInterval | None:
    """The interval that views show, of medians, or of the means of effects; None with too few samples for it."""
    if sample.of_effects:
        return sample.mean_interval(confidence_level) if not sample.any_time and sample.n_samples > 2 else None
    return None if sample.too_few_for(confidence_level) is not None else sample.confidence_interval(confidence_level)


def interval_and_smoothed(
    sample: AttributionSample, confidence_level: float, heights: np.ndarray | None = None
) -> tuple[ConfidenceInterval | None, np.ndarray | None, np.ndarray | None]:
    """`interval_of`, and where it is one of medians the smoothed scores, and how many samples lie below each height.

    The samples are sorted once for all.
    """
    if sample.of_effects or sample.too_few_for(confidence_level) is not None:
        return interval_of(sample, confidence_level), None, None
    sample._look_at_intervals()
    averaged = median_ranks(sample.n_samples, confidence_level)
    return sorted_once.interval_and_smoothed(sample.values, sample._ranks_at(confidence_level), averaged, heights)


def why_no_ends(sample: AttributionSample, confidence_level: float) -> str:
    """Why `interval_of` gives None."""
    if sample.of_effects and sample.any_time:
        return "those of a mean are for a number of samples that was fixed beforehand"
    if sample.of_effects:
        return f"{sample.n_samples} samples are too few, a mean needs 3"
    return sample.too_few_for(confidence_level) or "the samples are too few"


def values_of_features(sample: AttributionSample) -> np.ndarray | None:
    r"""The input's own number for each feature, (batch, \*features), such as the columns of a table; None without."""
    inputs = sample.inputs
    single = sample.noun == "feature" and sample.population is None and isinstance(inputs, np.ndarray)
    return inputs if single and inputs.shape == sample.values.shape[1:] else None
