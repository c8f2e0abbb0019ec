"""Decisions: which features are significant, by how many samples, about which threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metfa import stats
from metfa._base.percents import counted
from metfa.results.corrections import E_VALUES
from metfa.results.families import histograms, least_counts, samples_needed, undecided_share
from metfa.results.terms import Terms, check_fits
from metfa.results.thresholds import flat_in_words, resolved, shared, sides
from metfa.stats import sequential, sign_tests
from metfa.stats.sequential import fewest_reaching
from metfa.stats.validation import as_level

__all__ = [
    "Decision",
    "TooFewSamplesError",
    "any_time_undecided",
    "decide",
    "kinds_at",
    "marks_of",
    "samples_for_interval",
    "tested",
]

NOUNS = "sample", "feature"
AT_ZERO = "most {} of each are 0 to rounding"


class TooFewSamplesError(ValueError):
    """So few samples that no feature could become significant; the message names the smallest number."""


@dataclass(frozen=True, eq=False)
class Decision:
    r"""What was decided about each feature, and how.

    Attributes
    ----------
    marks : ndarray of int8, (batch, \*features)
        +1 where the median lies above the threshold, -1 below, 0 undecided.
    test : stats.SignTestResult
        The test behind them; a `stats.SequentialTestResult` where it holds at any time.
    thresholds : ndarray of float64
        Broadcasts against the marks; nan where a rule found none, as for constant attributions,
        and where all noisy copies are the same.
    terms : Terms
        Terms of the decision.
    nothing : tuple of (str or None)
        Why no feature of an input stands out, so that all its features are undecided, in words; None for an input whose
        features may stand out. One entry for each input.
    """

    marks: np.ndarray
    test: stats.SignTestResult
    thresholds: np.ndarray
    terms: Terms
    nothing: tuple[str | None, ...]

    @property
    def any_time(self) -> bool:
        """Whether the decision holds whenever sampling stops."""
        return isinstance(self.test, stats.SequentialTestResult)

    @property
    def threshold(self) -> float | None:
        """The threshold that all features share, nan if there is none; None where they differ."""
        return shared(self.thresholds)

    @property
    def kinds(self) -> dict[int, str]:
        """Names of the features with each mark."""
        return kinds_at(self.threshold, self.terms.sides, self.terms.sides_at)

    @property
    def near_zero(self) -> np.ndarray:
        r"""Features without a sign: most of their scores lie too near to the threshold 0, bool (batch, \*features)."""
        return (self.thresholds == 0) & (self.test.above + self.test.below < self.test.n / 2)

    @property
    def undecided(self) -> np.ndarray:
        """Share of the features of each input that are undecided, (batch,)."""
        return (self.marks == 0).reshape(len(self.marks), -1).mean(axis=1)

    def pvalue(self, alternative: str) -> np.ndarray:
        r"""The p-values of one side, "greater" or "less", (batch, \*features): a correction takes those of an input."""
        result_of = sequential.result_of if self.any_time else sign_tests.result_of
        return result_of(self.test.above, self.test.below, self.test.n, alternative).pvalue

    def question(self, noun: str) -> str:
        """The question that was asked about each feature, and its level; `noun` is the word for a feature."""
        reasons = [why for why in self.nothing if why is not None]
        if len(reasons) == len(self.nothing):
            return flat_in_words(reasons[0], noun)
        batch, size = len(self.marks), counted(self.marks[0].size, noun)
        each = f"over the {size} of each input" if self.terms.correction is not None else f"{size} of each input"
        level = f"{self.terms.level}; {size if batch == 1 else each}"
        sides = self.terms.sides
        if sides is not None and self.threshold == self.terms.sides_at:
            if not self.terms.of_differences:
                return f"what is shown of a {noun}: {', or '.join(sides)}? ({level})"
            return f"does a {noun} get {', or '.join(sides)}, by its median difference? ({level})"
        compared = "a threshold of its own" if self.threshold is None else f"{self.threshold:.3g}"
        if self.terms.of_effects:
            return f"do more draws of a {noun} lie above, or below, {compared} than chance explains? ({level})"
        median = "median difference" if self.terms.of_differences else "median"
        return f"is the {median} of a {noun} above or below {compared}? ({level})"


def kinds_at(threshold: float | None, sides: tuple[str, str] | None = None, sides_at: float = 0.0) -> dict[int, str]:
    """Names of the features with each mark: the sign for the threshold 0, else important and unimportant.

    Scores with `sides` (`Terms.sides`) have these names at the threshold `sides_at`, and are no measure of importance
    elsewhere.
    """
    if sides is None:
        sides = ("positive", "negative") if threshold == 0 else ("important", "unimportant")
    elif threshold != sides_at:
        at = "the threshold" if threshold is None else f"{threshold:.3g}"
        sides = (f"above {at}", f"below {at}")
    above, below = sides
    return {1: above, 0: "undecided", -1: below}


def decide(
    values: np.ndarray, terms: Terms, *, unmoved: np.ndarray, any_time: bool = False, nouns: tuple[str, str] = NOUNS
) -> Decision:
    r"""Decide each feature of samples (n, batch, \*features); a correction is for the features of one input.

    Parameters
    ----------
    values : ndarray
        The samples; the first `terms.split` are not tested.
    terms : Terms
        Threshold, alpha, correction, split and families.
    unmoved : ndarray of bool, (batch,)
        See `AttributionSample.unmoved`: all features of such an input are undecided.
    any_time : bool
        Whether the decision must hold whenever sampling stops. If so, it uses e-values, as "e-bh" and
        "closed-e-bh" always do.
    nouns : (str, str)
        Words for a sample and for a feature.

    Raises
    ------
    TooFewSamplesError
        If nothing could become significant with so few samples.
    """
    check_fits(terms, values.shape)
    any_time = any_time or terms.correction in E_VALUES
    n_features = int(np.prod(values.shape[2:]))
    needed = samples_needed(terms, n_features, any_time=any_time)
    if len(values) - terms.split < needed:
        of = "both sides together" if terms.together else "each side"
        noun, feature = nouns
        tests = of if terms.correction is None else f"{terms.correction} over {counted(n_features, feature)}, {of}"
        kept = f" ({terms.split} kept for the threshold)" if terms.split else ""
        raise TooFewSamplesError(
            f"too few {noun}s for `alpha`={terms.alpha} ({tests}): got {len(values)}{kept}, at least "
            f"{needed + terms.split} are needed for anything to become significant"
        )
    test, thresholds, nothing = tested(values, terms, "two-sided", unmoved=unmoved, any_time=any_time)
    return Decision(marks_of(test, terms), test, thresholds, terms, nothing)


def tested(
    values: np.ndarray, terms: Terms, alternative: str, *, unmoved: np.ndarray, any_time: bool
) -> tuple[stats.SignTestResult, np.ndarray, tuple[str | None, ...]]:
    r"""Test of samples (n, batch, \*features) about the threshold of the terms; the thresholds; `Decision.nothing`."""
    thresholds, nothing = resolved(values, terms, unmoved)
    rest = values[terms.split :]
    above, below = sides(rest, thresholds, terms.unit)
    result_of = sequential.result_of if any_time else sign_tests.result_of
    test = result_of(above, below, len(rest), alternative)
    if (thresholds == 0).any():
        zero = (thresholds == 0) & (above + below < len(rest) / 2)
        of_rows = zero.reshape(len(zero), -1).all(axis=1).tolist()
        why_zero = AT_ZERO.format("differences" if terms.of_differences else "scores")
        nothing = tuple(why_zero if of_row else why for of_row, why in zip(of_rows, nothing, strict=True))
    return test, thresholds, nothing


def marks_of(test: stats.SignTestResult, terms: Terms) -> np.ndarray:
    r"""+1, -1 and 0, int8 (batch, \*features), of the counts of a test; each input has families of its own."""
    marks = np.zeros(test.above.shape, np.int8)
    any_time = isinstance(test, stats.SequentialTestResult)
    for row, (above, below) in enumerate(zip(test.above, test.below, strict=True)):
        up, down = least_counts(*histograms(above, below, test.n), terms, any_time=any_time)
        marks[row] = np.subtract(above >= up, below >= down, dtype=np.int8)
    return marks


def any_time_undecided(above: np.ndarray, below: np.ndarray, n: int, terms: Terms) -> np.ndarray:
    """Share of each input's features, (batch,), that `marks_of` leaves undecided by e-values of the first `n` samples.

    The histograms of the counts decide, n + 1 numbers for each side, so a look costs next to nothing.
    """
    return np.array(
        [undecided_share(*histograms(*counts, n), terms, any_time=True) for counts in zip(above, below, strict=True)]
    )


def samples_for_interval(confidence_level: float, *, any_time: bool = False) -> int:
    """Smallest N with an interval of that level; with `any_time`, one that holds whenever sampling stops."""
    miss = 1 - as_level(confidence_level, "confidence_level")
    return fewest_reaching(2 / miss) if any_time else stats.min_samples(miss)
