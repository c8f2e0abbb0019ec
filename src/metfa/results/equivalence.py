"""Whether differences are larger than some number, or are shown to be smaller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.validation import check_number
from metfa.results.corrections import BOTH, E_VALUES, STATEMENTS, check_correction
from metfa.results.decisions import TooFewSamplesError
from metfa.results.families import histograms, least_counts, samples_needed
from metfa.results.terms import Terms
from metfa.results.thresholds import sides

if TYPE_CHECKING:
    from metfa.results.samples import Samples

__all__ = ["changed", "changed_together", "check_enough", "unchanged"]


def changed(sample: Samples, delta: Any, alpha: float | None, correction: str | None) -> np.ndarray:
    """See `AttributionSample.changed`."""
    return changed_together([sample], delta, alpha, correction)[0][0]


def changed_together(
    samples: Sequence[Samples], delta: Any, alpha: float | None, correction: str | None
) -> tuple[list[np.ndarray], Terms]:
    """The same for several results as one family, such as inputs whose regions are their own; and the terms.

    Raises
    ------
    ValueError
        Also if the results have different numbers of samples.
    """
    delta, sizes = check_number(delta, "delta"), sorted({sample.n_samples for sample in samples})
    if len(sizes) > 1:
        raise ValueError(
            f"all results must have as many samples, got {', '.join(map(str, sizes))}: explain all with one `n_samples`"
        )
    any_time = any(sample.any_time for sample in samples)
    usual = "closed-e-bh" if any_time else "holm"
    asked = usual if correction is None else correction
    terms, *_ = [_terms(sample, alpha, asked, BOTH, any_time=any_time) for sample in samples]
    any_time = check_enough(sizes[0], terms, sum(sample.values[0].size for sample in samples), any_time=any_time)
    counts = [(_sides(sample, delta)[0], _sides(sample, -delta)[1]) for sample in samples]
    above, below = (np.concatenate([side.ravel() for side in sides]) for sides in zip(*counts, strict=True))
    up, down = least_counts(*histograms(above, below, sizes[0]), terms, any_time=any_time)
    return [np.subtract(more >= up, less >= down, dtype=np.int8) for more, less in counts], terms


def unchanged(sample: Samples, delta: Any, alpha: float | None, correction: str | None) -> np.ndarray:
    """See `AttributionSample.unchanged`."""
    delta = check_number(delta, "delta", above=0)
    terms = _terms(sample, alpha, correction, STATEMENTS, any_time=sample.any_time)
    any_time = check_enough(sample.n_samples, terms, sample.n_features, any_time=sample.any_time)
    _, below = _sides(sample, delta)
    above, _ = _sides(sample, -delta)
    fewer = np.minimum(above, below)  # the larger p-value of both tests, and the smaller e-value
    none = np.zeros_like(fewer[0])
    least = [least_counts(*histograms(row, none, sample.n_samples), terms, any_time=any_time)[0] for row in fewer]
    return fewer >= np.reshape(least, (-1, *[1] * len(sample.feature_shape)))


def _terms(sample: Samples, alpha: float | None, correction: str | None, families: str, *, any_time: bool) -> Terms:
    if sample.pair is None:
        raise ValueError(
            "`delta` is for differences, and these are scores: write `metfa.compare(before, after)`, or a threshold of "
            "`significance_map`"
        )
    known = check_correction(correction, any_time=any_time)
    return Terms(0.0, 0.05 if alpha is None else alpha, known, families=families)


def check_enough(n: int, terms: Terms, n_features: int, *, any_time: bool = False) -> bool:
    """Whether e-values decide; raises if so few samples could show nothing."""
    any_time = any_time or terms.correction in E_VALUES
    needed = samples_needed(terms, n_features, any_time=any_time)
    if n < needed:
        over = f"{terms.correction} over {n_features} differences" if terms.correction else "uncorrected"
        both = ", both sides together" if terms.together else ""
        raise TooFewSamplesError(
            f"too few samples for `alpha`={terms.alpha} ({over}{both}): got {n}, at least {needed} are needed for "
            "anything to become significant"
        )
    return any_time


def _sides(sample: Samples, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of samples above and below; none of inputs whose samples are one explanation N times."""
    above, below = sides(sample.values, np.array([threshold]), sample.unit)
    moved = ~sample.unmoved.reshape(-1, *[1] * len(sample.feature_shape))
    return above * moved, below * moved
