"""Decisions: which features are significant, by how many samples, about which threshold."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metfa import stats
from metfa._base.validation import shown
from metfa._base.warnings import DegenerateAttributionsWarning, SignedAttributionsWarning, warn
from metfa.results.terms import Terms, check_correction, check_fits, of_both_signs
from metfa.stats.sequential import fewest_reaching, reciprocal_table
from metfa.stats.validation import as_level

__all__ = [
    "Decision",
    "TooFewSamplesError",
    "any_time_undecided",
    "decide",
    "kinds_at",
    "marks_of",
    "number_of",
    "rule_thresholds",
    "samples_for_interval",
    "samples_needed",
    "tested",
    "thresholds_of",
]

SORTED_IN_MEMORY = 2**25  # bytes of samples on file that may be sorted in memory; more are sorted on file


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
        Broadcasts against the marks; nan where a rule found none, as for constant attributions.
    terms : Terms
        Terms of the decision.
    """

    marks: np.ndarray
    test: stats.SignTestResult
    thresholds: np.ndarray
    terms: Terms

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
        return kinds_at(self.threshold)

    @property
    def undecided(self) -> np.ndarray:
        """Share of the features of each input that are undecided, (batch,)."""
        return (self.marks == 0).reshape(len(self.marks), -1).mean(axis=1)

    def question(self, noun: str) -> str:
        """The question that was asked about each feature, and its level; `noun` is the word for a feature."""
        if np.isnan(self.thresholds).all():
            return "no threshold exists: all scores are equal"
        compared = "a threshold of its own" if self.threshold is None else f"{self.threshold:.3g}"
        count = f"1 {noun}" if self.marks.size == 1 else f"{self.marks.size:,} {noun}s"
        return f"is the median of a {noun} above or below {compared}? ({self.terms.level}; {count})"


def kinds_at(threshold: float | None) -> dict[int, str]:
    """Names of the features with each mark: the sign for the threshold 0, else important and unimportant."""
    above, below = ("positive", "negative") if threshold == 0 else ("important", "unimportant")
    return {1: above, 0: "undecided", -1: below}


def decide(values: np.ndarray, terms: Terms, *, any_time: bool = False) -> Decision:
    r"""Decide each feature of samples (n, batch, \*features), each input's features as one family.

    Parameters
    ----------
    values : ndarray
        The samples; the first `terms.split` are not tested.
    terms : Terms
        Threshold, alpha, correction and split.
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
    test, thresholds = tested(values, terms, "two-sided", any_time=any_time)
    return Decision(marks_of(test, terms.alpha, terms.correction), test, thresholds, terms)


def tested(
    values: np.ndarray, terms: Terms, alternative: str, *, any_time: bool
) -> tuple[stats.SignTestResult, np.ndarray]:
    r"""Test of samples (n, batch, \*features) about the threshold of the terms, and the thresholds."""
    thresholds = thresholds_of(values, terms)
    test = stats.sequential_test if any_time else stats.sign_test
    return test(values[terms.split :], thresholds, alternative=alternative), thresholds


def thresholds_of(values: np.ndarray, terms: Terms) -> np.ndarray:
    r"""Thresholds in a shape that broadcasts against (batch, \*features); a rule takes the first `split`, or all."""
    check_fits(terms, values.shape)
    given = terms.threshold
    if callable(given):
        given = rule_thresholds(given, values[: terms.split or None])
    thresholds = np.asarray(given)
    return thresholds.reshape(-1, *[1] * (values.ndim - 2)) if thresholds.ndim == 1 else thresholds


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
    pvalues = np.minimum(1, 2 * reciprocal_table(n))
    shares = []
    for row in larger:
        as_large = np.bincount(row, minlength=n + 1)[::-1].cumsum()[::-1]  # features that would be rejected with it
        if correction is None:
            rejected = pvalues <= 2 * alpha
        elif correction == "bonferroni":
            rejected = pvalues * row.size <= alpha
        else:
            rejected = (as_large > 0) & (pvalues * (row.size / np.maximum(as_large, 1)) <= alpha)
        decided = as_large[rejected.argmax()] if rejected.any() else 0
        shares.append(1 - decided / row.size)
    return np.array(shares)


def rule_thresholds(rule: Callable[[np.ndarray], Any], values: np.ndarray) -> np.ndarray:
    r"""Threshold that `rule` finds in the values (n, batch, \*features) of each input, (batch,) float64."""
    if rule is stats.jenks and (found := of_both_signs(values)) is not None:
        row, lowest, highest = found
        warn(
            f"the attributions are signed (input {row}: from {lowest:.3g} to {highest:.3g}): natural breaks would "
            "call strong negative evidence unimportant; use the threshold 0 for positive / negative / undecided, or "
            "explain absolute values with `metfa.explainers.heatmap(explainer)`",
            SignedAttributionsWarning,
        )
    found = np.array([_of_input(rule, values[:, row]) for row in range(values.shape[1])], dtype=np.float64)
    if rule is not stats.jenks:
        _warn_if_outside(found, values)
    return found


def _warn_if_outside(thresholds: np.ndarray, values: np.ndarray) -> None:
    """Of a rule of the user's, such as `len`, whose number has nothing to do with the scores."""
    for row, threshold in enumerate(thresholds):
        low, high = float(values[:, row].min()), float(values[:, row].max())
        if not low <= threshold <= high:
            warn(
                f"the rule of `threshold` gives {threshold:.6g} for input {row}, whose scores lie between {low:.6g} "
                f"and {high:.6g}: no score lies on its other side",
                DegenerateAttributionsWarning,
            )
            return


def _of_input(rule: Callable[[np.ndarray], Any], values: np.ndarray) -> float:
    if rule is stats.jenks and values.nbytes > SORTED_IN_MEMORY and isinstance(values, np.memmap) and values.filename:
        return _jenks_on_file(values, Path(values.filename).parent)
    try:
        returned = rule(values)
    except Exception as error:  # of a function that is no rule, or the user's own
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"the rule of `threshold` failed: {type(error).__name__}: {error}") from error
    return number_of(returned)


def number_of(returned: Any) -> float:
    """What a rule returned, as one number; raises for anything else."""
    try:
        if isinstance(returned, str | bytes):
            raise TypeError
        return float(returned)
    except (TypeError, ValueError):
        raise TypeError(f"`threshold`: a threshold rule must return one number, got {shown(returned)}") from None


def _jenks_on_file(values: np.ndarray, folder: Path) -> float:
    """`stats.jenks` of samples on file, sorted in a file beside them: the process's own memory stays flat."""
    with tempfile.TemporaryFile(dir=folder if os.access(folder, os.W_OK) else None) as file:
        for sample in values:
            file.write(np.ascontiguousarray(sample).data)
        file.flush()
        on_disk = np.memmap(file, dtype=values.dtype, mode="r+")
        on_disk.sort()
        return stats.jenks_sorted(on_disk)


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
