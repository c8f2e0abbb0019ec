"""Decisions: which features are significant, by how many samples, about which threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metfa import stats
from metfa._base.percents import counted
from metfa.results.corrections import check_correction
from metfa.results.terms import Terms, check_fits
from metfa.results.thresholds import resolved, sides
from metfa.stats import sequential, sign_tests
from metfa.stats.sequential import fewest_reaching, reciprocal_table
from metfa.stats.sign_null import upper_tail_table
from metfa.stats.validation import as_level

__all__ = [
    "Decision",
    "TooFewSamplesError",
    "any_time_undecided",
    "decide",
    "kinds_at",
    "marks_of",
    "samples_for_interval",
    "samples_needed",
    "tested",
    "undecided_share",
]

AT_ZERO = "most scores of each are 0 to rounding"


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
        and where the noise changes nothing.
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
        first = self.thresholds.flat[0] if self.thresholds.size else np.nan
        return (
            float(first)
            if np.array_equal(self.thresholds, np.full_like(self.thresholds, first), equal_nan=True)
            else None
        )

    @property
    def kinds(self) -> dict[int, str]:
        """Names of the features with each mark."""
        return kinds_at(self.threshold, self.terms.sides)

    @property
    def near_zero(self) -> np.ndarray:
        r"""Features without a sign: most of their scores lie too near to the threshold 0, bool (batch, \*features)."""
        return (self.thresholds == 0) & (self.test.above + self.test.below < self.test.n / 2)

    @property
    def undecided(self) -> np.ndarray:
        """Share of the features of each input that are undecided, (batch,)."""
        return (self.marks == 0).reshape(len(self.marks), -1).mean(axis=1)

    def question(self, noun: str) -> str:
        """The question that was asked about each feature, and its level; `noun` is the word for a feature."""
        if None not in self.nothing:
            return f"no {noun} stands out: {self.nothing[0]}"
        compared = "a threshold of its own" if self.threshold is None else f"{self.threshold:.3g}"
        level = f"{self.terms.level}; {counted(self.marks.size, noun)}"
        return f"is the median of a {noun} above or below {compared}? ({level})"


def kinds_at(threshold: float | None, sides: tuple[str, str] | None = None) -> dict[int, str]:
    """Names of the features with each mark: the sign for the threshold 0, else important and unimportant.

    Scores with `sides` (`Terms.sides`) have these names at the threshold 0, and are no measure of importance elsewhere.
    """
    if sides is None:
        sides = ("positive", "negative") if threshold == 0 else ("important", "unimportant")
    elif threshold != 0:
        at = "the threshold" if threshold is None else f"{threshold:.3g}"
        sides = (f"above {at}", f"below {at}")
    above, below = sides
    return {1: above, 0: "undecided", -1: below}


def decide(values: np.ndarray, terms: Terms, *, unmoved: np.ndarray, any_time: bool = False) -> Decision:
    r"""Decide each feature of samples (n, batch, \*features), each input's features as one family.

    Parameters
    ----------
    values : ndarray
        The samples; the first `terms.split` are not tested.
    terms : Terms
        Threshold, alpha, correction and split.
    unmoved : ndarray of bool, (batch,)
        See `AttributionSample.unmoved`: all features of such an input are undecided.
    any_time : bool
        Whether the decision must hold whenever sampling stops. If so, it uses e-values; "e-bh" always does.

    Raises
    ------
    TooFewSamplesError
        If nothing could become significant with so few samples.
    """
    check_fits(terms, values.shape)
    any_time = any_time or terms.correction == "e-bh"
    n_features = int(np.prod(values.shape[2:]))
    needed = samples_needed(terms.alpha, terms.correction, n_features, any_time=any_time)
    if len(values) - terms.split < needed:
        tests = (
            "each side" if terms.correction is None else f"{terms.correction} over {n_features} features, both sides"
        )
        kept = f" ({terms.split} kept for the threshold)" if terms.split else ""
        raise TooFewSamplesError(
            f"too few samples for `alpha`={terms.alpha} ({tests}): got {len(values)}{kept}, at least "
            f"{needed + terms.split} are needed for anything to become significant"
        )
    test, thresholds, nothing = tested(values, terms, "two-sided", unmoved=unmoved, any_time=any_time)
    return Decision(marks_of(test, terms.alpha, terms.correction), test, thresholds, terms, nothing)


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
        nothing = tuple(AT_ZERO if of_row else why for of_row, why in zip(of_rows, nothing, strict=True))
    return test, thresholds, nothing


def marks_of(test: stats.SignTestResult, alpha: float, correction: str | None) -> np.ndarray:
    r"""+1, -1 and 0, int8 (batch, \*features); each input's features are one family.

    `test` is two-sided. Without a correction each side is tested at `alpha`. "e-bh" takes the reciprocals of the
    e-values, of both sides of all features. Only the larger e-value of a feature can be rejected, so it is enough to
    look at twice its reciprocal, among half as many tests.
    """
    if correction is None:
        significant = test.pvalue <= 2 * alpha  # each side at alpha: the smaller tail is half of it
    else:
        flat = test.pvalue.reshape(len(test.pvalue), -1)
        method = "bh" if correction == "e-bh" else correction
        significant = (stats.correct(flat, method, axis=1) <= alpha).reshape(test.pvalue.shape)
    return (test.sign * significant).astype(np.int8)


def any_time_undecided(
    above: np.ndarray, below: np.ndarray, n: int, alpha: float, correction: str | None
) -> np.ndarray:
    """Share of each input's features, (batch,), that `marks_of` leaves undecided by e-values of the first `n` samples.

    Only the larger count decides. It takes n + 1 values, so a look needs no more than a histogram.
    """
    larger = np.maximum(above, below).reshape(len(above), -1)
    return np.array(
        [undecided_share(np.bincount(row, minlength=n + 1), alpha, correction, any_time=True) for row in larger]
    )


def undecided_share(features: np.ndarray, alpha: float, correction: str | None, *, any_time: bool) -> float:
    """Share of an input's features that `marks_of` leaves undecided.

    Parameters
    ----------
    features : ndarray, (n + 1,)
        How many features have 0, ..., n as the larger of their counts above and below; may be expected numbers.
    alpha, correction, any_time
        As for `decide`.
    """
    n, m = len(features) - 1, features.sum()
    tails = reciprocal_table(n) if any_time or correction == "e-bh" else upper_tail_table(n)
    pvalues = np.minimum(1, 2 * tails)  # they fall as counts grow
    as_large = features[::-1].cumsum()[::-1]  # features that would be rejected with it
    some = np.maximum(as_large, 1e-12)
    if correction is None:
        rejected = pvalues <= 2 * alpha
    elif correction == "bonferroni":
        rejected = pvalues * m <= alpha
    elif correction == "holm":
        holds = pvalues * (m - np.append(as_large[1:], 0)) <= alpha
        rejected = np.logical_and.accumulate(holds[::-1])[::-1]
    else:
        factor = (1 / np.arange(1, round(m) + 1)).sum() if correction == "by" else 1.0
        rejected = (as_large > 0) & (pvalues * factor * m / some <= alpha)
    return float((m - (as_large[rejected.argmax()] if rejected.any() else 0)) / m)  # one rounding: 3 of 10 is 0.3


def samples_needed(alpha: float, correction: str | None, n_features: int, *, any_time: bool = False) -> int:
    """Smallest N at which any feature could become significant."""
    correction = check_correction(correction, any_time=any_time)
    if any_time or correction == "e-bh":
        # One side alone needs E >= 1 / alpha. e-BH tests both sides of m features: if it rejects one side of each,
        # it rejects half of its tests, so that each needs E >= 2 / alpha.
        tests = {None: 1, "e-bh": 2, "bonferroni": 2 * n_features}[correction]
        return fewest_reaching(tests / alpha)
    if correction is None:
        return stats.min_samples(alpha, "greater")
    n_tests = n_features if correction in ("bonferroni", "holm") else 1
    factor = float((1 / np.arange(1, n_features + 1)).sum()) if correction == "by" else 1.0
    return stats.min_samples(alpha / factor, "two-sided", n_tests)


def samples_for_interval(confidence_level: float, *, any_time: bool = False) -> int:
    """Smallest N with an interval of that level; with `any_time`, one that holds whenever sampling stops."""
    miss = 1 - as_level(confidence_level, "confidence_level")
    return fewest_reaching(2 / miss) if any_time else stats.min_samples(miss)
