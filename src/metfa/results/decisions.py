"""Tests of a sample: thresholds in the shape of its features, counts on either side, and what is significant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metfa import stats
from metfa._arrays import as_array, to_host
from metfa._base.validation import positive_int
from metfa.results.sample_size import TooFewSamplesError, check_alpha, samples_needed
from metfa.results.significance import marks_of

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample

__all__ = ["Decided", "Tested", "decided", "heights_of", "terms_of_until", "tested", "usual_terms"]


class Tested(NamedTuple):
    """A test, and what it was made with."""

    outcome: stats.MedianTestResult
    heights: np.ndarray  # thresholds, which broadcast against (batch, *features)
    held_out: int  # first samples that were kept for choosing them


class Decided(NamedTuple):
    """A significance map, and the test behind it."""

    marks: np.ndarray
    outcome: stats.MedianTestResult
    heights: np.ndarray
    held_out: int


def tested(sample: AttributionSample, threshold: Any, split: int | None, alternative: str, *, any_time: bool) -> Tested:
    """See `AttributionSample.test`."""
    held_out = _held_out(sample, split)
    heights = heights_of(sample, threshold, held_out)
    test = stats.sequential_test if any_time else stats.median_test
    return Tested(test(sample.values[held_out:], heights, alternative=alternative), heights, held_out)


def decided(
    sample: AttributionSample, threshold: Any, alpha: float, correction: str | None, split: int | None
) -> Decided:
    """See `AttributionSample.significance_map`."""
    check_alpha(alpha)
    held_out = _held_out(sample, split)
    any_time = sample.any_time or correction == "e-bh"
    needed = samples_needed(alpha, correction, sample.n_features, any_time=any_time)
    if sample.n_samples - held_out < needed:
        tests = "each side" if correction is None else f"{correction} over {sample.n_features} features, both sides"
        kept = f" ({held_out} kept for the threshold)" if held_out else ""
        raise TooFewSamplesError(
            f"too few samples for `alpha`={alpha} ({tests}): got {sample.n_samples}{kept}, at least "
            f"{needed + held_out} are needed for anything to become significant"
        )
    found = tested(sample, threshold, split, "two-sided", any_time=any_time)
    return Decided(marks_of(found.outcome, alpha, correction), *found)


def heights_of(sample: AttributionSample, threshold: Any, held_out: int) -> np.ndarray:
    r"""Thresholds in a shape that broadcasts against (batch, \*features); a rule sees the first `held_out`, or all."""
    if isinstance(threshold, str):
        raise TypeError(
            f"`threshold` must be a number or a rule, got the text {threshold!r}: write metfa.stats.jenks for "
            "natural breaks"
        )
    given = sample.threshold(threshold, split=held_out) if callable(threshold) else threshold
    heights = to_host(as_array(given, "threshold")).astype(np.float64)
    if not callable(threshold) and np.isnan(heights).any():
        raise ValueError("`threshold` must be a number, got NaN, on neither side of which anything lies")
    batch = sample.values.shape[1]
    if heights.ndim == 0 or heights.shape == sample.values.shape[1:]:
        return heights
    if heights.shape == (batch,):
        return heights.reshape(batch, *[1] * len(sample.feature_shape))
    raise ValueError(
        f"`threshold` must be a number, one an input ({batch},) or one a feature {sample.values.shape[1:]}, "
        f"got shape {heights.shape}"
    )


def terms_of_until(sample: AttributionSample) -> tuple[np.ndarray, int] | None:
    """Thresholds that `metfa.until` fixed, and how many samples it kept for them; None where it tested nothing."""
    stopping = sample.stopping
    return None if stopping is None or not stopping.tested else (stopping.settings["threshold"], stopping.held_out)


def usual_terms(sample: AttributionSample) -> tuple[Any, int | None]:
    """Threshold and split where none is given: those of `metfa.until`, else natural breaks of all samples."""
    return terms_of_until(sample) or (stats.jenks, None)


def _held_out(sample: AttributionSample, split: int | None) -> int:
    """How many of the first samples are kept for choosing the threshold."""
    split = 0 if split is None else positive_int(split, "split", minimum=0)
    if split >= sample.n_samples:
        raise ValueError(f"`split` must leave samples to test, got {split} of {sample.n_samples}")
    return split
