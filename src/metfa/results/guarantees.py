"""At least how many features of a region lie above or below a threshold, for every region at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa import stats
from metfa._arrays import as_array, is_array, to_host
from metfa._base.percents import counted, percent
from metfa._base.validation import one_of, shown
from metfa.results.decisions import TooFewSamplesError, kinds_at, tested
from metfa.results.regions import Regions
from metfa.results.rules import saw_tested
from metfa.results.terms import Terms
from metfa.results.thresholds import flat_in_words, shared
from metfa.stats.closed_bounds import DEPENDENCE, TrueDiscoveries
from metfa.stats.sequential import fewest_reaching
from metfa.stats.sign_null import upper_tail_table

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample

__all__ = ["Guarantee", "KeptBounds", "guarantee"]

Sides = tuple[TrueDiscoveries, TrueDiscoveries]
TESTS = {"any": "Hommel's tests, under any dependence", "positive": "Simes' tests, valid under positive dependence"}
E_TESTS = "means of e-values, under any dependence and whenever sampling stops"


@dataclass(frozen=True, eq=False)
class Guarantee:
    r"""At least how many features of a region are important, and at least how many are unimportant.

    A feature is important if the median of its attribution under the noise lies above the threshold, and unimportant if
    it lies below; at the threshold 0 "positive" and "negative". Made by `AttributionSample.guarantee`; its text is the
    whole statement.

    Each of the two statements holds with probability at least 1 - alpha for *all* regions of an input together. So a
    region may be chosen after a look at the samples, and as many may be asked about as one likes. Both statements hold
    together with probability at least 1 - 2 alpha. Different inputs are different families.

    Attributes
    ----------
    important, unimportant : ndarray of int, (batch,)
        Lower bounds on the number of important and of unimportant features in the region.
    size : ndarray of int, (batch,)
        Number of features of the region.
    alpha : float
        Probability that any bound of a statement is too large, at most.
    dependence : {"any", "positive"}
        What the bounds allow among the features.
    any_time : bool
        Whether the bounds are made of e-values, so that they hold whenever sampling stops.
    n_samples : int
        Number of samples that were tested.
    thresholds : tuple of (float or None)
        Threshold of each input, nan where a rule found none; None where the features have thresholds of their own.
    nothing : tuple of (str or None)
        Why no feature of an input stands out, as in `Decision`; its bounds are 0.
    sides, effects_at
        As for `Terms`.
    noun, sample_noun : str
        Words for a feature and for a sample.

    Notes
    -----
    For a fixed number of samples the bounds are those of closed testing with the p-values of the sign test
    (`stats.simes_bounds`) [1]_: by Hommel's tests [2]_, which are valid under any dependence, or by Simes' tests with
    ``dependence="positive"``. That finds more, and is valid if the features are independent or positively dependent.
    Shares of a whole, SHAP values and differences from the rest are negatively dependent, and no proof covers them.
    Where sampling stopped because of what was seen, the bounds are made of means of e-values (`stats.e_value_bounds`)
    [3]_, which hold at any time and under any dependence.

    The threshold must be fixed before the samples, or come from samples that are not tested. Of 60 thresholds that were
    tried on the same samples, the best one broke the bound in .05 to .10 of runs at alpha .05, a fixed one in .002.

    References
    ----------
    .. [1] J. J. Goeman, R. J. Meijer, T. J. P. Krebs and A. Solari, "Simultaneous Control of All False Discovery
       Proportions in Large-Scale Multiple Hypothesis Testing", Biometrika 106, 2019, :doi:`10.1093/biomet/asz041`.
    .. [2] G. Hommel, "Tests of the Overall Hypothesis for Arbitrary Dependence Structures", Biometrical Journal 25,
       1983.
    .. [3] V. Vovk and R. Wang, "Confidence and Discoveries with E-values", Statistical Science 38, 2023.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> sample = metfa.explain(lambda x, target: x**2, np.array([[3.0, 2.0, 2.0, 0.1, 0.0]]), 0,
    ...                        noise=metfa.noise.Uniform(0.2), n_samples=20, rng=0)
    >>> found = sample.guarantee(np.array([True, True, False, True, False]), 1.0)
    >>> found.important, found.unimportant, found.size
    (array([2]), array([1]), array([3]))
    """

    important: np.ndarray
    unimportant: np.ndarray
    size: np.ndarray
    alpha: float
    dependence: str
    any_time: bool
    n_samples: int
    thresholds: tuple[float | None, ...]
    nothing: tuple[str | None, ...]
    sides: tuple[str, str] | None = None
    noun: str = "feature"
    sample_noun: str = "sample"
    effects_at: float | None = None

    def __str__(self) -> str:
        return "\n".join([*map(self._of_input, range(len(self.size))), self._level()])

    def _of_input(self, row: int) -> str:
        """What is guaranteed for one input."""
        at, size, why = self.thresholds[row], int(self.size[row]), self.nothing[row]
        where = f"input {row} of {len(self.size)}: " if len(self.size) > 1 else ""
        if why is not None:
            return f"{where}{flat_in_words(why, self.noun)}. Nothing is guaranteed"
        kinds = kinds_at(at, self.sides, self.effects_at or 0.0)
        parts = [
            f"at least {int(count[row]):,}{f' ({percent(count[row] / size, 1)})' if size else ''} {kinds[mark]}"
            for mark, count in ((1, self.important), (-1, self.unimportant))
        ]
        compared = f"thresholds of each {self.noun}" if at is None else f"the threshold {at:.4g}"
        over = "under the noise" if self.sample_noun == "sample" else f"over the {self.sample_noun}s"
        by = f"medians {over}" if self.effects_at is None else "contributions"
        return f"{where}of {counted(size, self.noun)}, {' and '.join(parts)}, by {by} and {compared}"

    def _level(self) -> str:
        """With which probability, for what, and by which tests."""
        return (
            f"for all regions at once, also one chosen after a look: each of the two statements holds with probability "
            f"at least {percent(1 - self.alpha)}, both with at least {percent(1 - 2 * self.alpha)}; "
            f"{counted(self.n_samples, self.sample_noun)}, {E_TESTS if self.any_time else TESTS[self.dependence]}"
        )


@dataclass(frozen=True, eq=False)
class KeptBounds:
    """Bounds for all regions of each input, made once: above and below the thresholds, and what they are for."""

    terms: Terms
    dependence: str
    any_time: bool
    bounds: tuple[Sides, ...]
    n_samples: int
    thresholds: tuple[float | None, ...]
    nothing: tuple[str | None, ...]


def guarantee(sample: AttributionSample, region: Any, terms: Terms, dependence: str = "any") -> Guarantee:
    """See `AttributionSample.guarantee`."""
    one_of(dependence, "dependence", DEPENDENCE)
    if sample.any_time and dependence != "any":
        raise ValueError(
            "`dependence` 'positive' is for a number of samples that was fixed beforehand, but here it may depend on "
            "what was seen: leave it out, for means of e-values, which hold under any dependence"
        )
    if saw_tested(terms.threshold, terms.split):
        raise ValueError(
            "`threshold` must not depend on the samples that are tested: it is a rule, and no sample is left out for "
            "it. Write a number that was fixed before sampling; or `split=10`, so that the first ten samples choose "
            "it; or for twice the mean of each map `sample.scaled('mean').guarantee(region, 2)`"
        )
    masks = _masks(region, sample)
    kept = sample.__dict__.get("_kept_bounds")
    if kept is None or (kept.terms, kept.dependence, kept.any_time) != (terms, dependence, sample.any_time):
        kept = _made(sample, terms, dependence)
        sample.__dict__["_kept_bounds"] = kept  # many regions are asked about on the same terms
    rows = [(kept.bounds[row], masks[row if len(masks) > 1 else 0]) for row in range(len(kept.bounds))]
    found = np.array([[bound.among(mask) for bound in sides] for sides, mask in rows], dtype=np.int64).reshape(-1, 2)
    return Guarantee(
        important=found[:, 0],
        unimportant=found[:, 1],
        size=np.array([np.count_nonzero(mask) for _, mask in rows], dtype=np.int64),
        alpha=terms.alpha,
        dependence=dependence,
        any_time=kept.any_time,
        n_samples=kept.n_samples,
        thresholds=kept.thresholds,
        nothing=kept.nothing,
        sides=terms.sides,
        noun=sample.noun,
        sample_noun=sample.sample_noun,
        effects_at=terms.effects_at,
    )


def _made(sample: AttributionSample, terms: Terms, dependence: str) -> KeptBounds:
    """The bounds of all inputs; raises if no bound could be larger than 0 with so few samples."""
    any_time, n = sample.any_time, sample.n_samples - terms.split
    needed = _samples_needed(terms.alpha, dependence, sample.n_features, any_time=any_time)
    if n < needed:
        kept = f" ({terms.split} kept for the threshold)" if terms.split else ""
        raise TooFewSamplesError(
            f"too few {sample.sample_noun}s for `alpha`={terms.alpha} ({counted(sample.n_features, sample.noun)}, "
            f"dependence {dependence!r}): got {sample.n_samples}{kept}, at least {needed + terms.split} are needed for "
            "anything to be guaranteed"
        )
    test, thresholds, nothing = tested(sample.values, terms, "two-sided", unmoved=sample.unmoved, any_time=any_time)

    def bounds(row: int) -> Sides:
        if isinstance(test, stats.SequentialTestResult):
            above, below = test.log_e_above[row], test.log_e_below[row]
            return stats.e_value_bounds(above, terms.alpha), stats.e_value_bounds(below, terms.alpha)
        above, below = (upper_tail_table(n)[counts[row]] for counts in (test.above, test.below))
        return (
            stats.simes_bounds(above, terms.alpha, dependence=dependence),
            stats.simes_bounds(below, terms.alpha, dependence=dependence),
        )

    rows = range(sample.values.shape[1])
    by_row = np.broadcast_to(thresholds, (len(rows), *thresholds.shape[1:])) if thresholds.ndim else thresholds
    return KeptBounds(
        terms=terms,
        dependence=dependence,
        any_time=any_time,
        bounds=tuple(map(bounds, rows)),
        n_samples=n,
        thresholds=tuple(shared(by_row[row] if thresholds.ndim else thresholds) for row in rows),
        nothing=nothing,
    )


def _samples_needed(alpha: float, dependence: str, n_features: int, *, any_time: bool) -> int:
    """Smallest number of samples at which a bound can be larger than 0: all of all features on one side."""
    if any_time:
        return fewest_reaching(1 / alpha)
    share = (1 / np.arange(1, n_features + 1)).sum() if dependence == "any" and n_features else 1.0
    return stats.min_samples(alpha / float(share), "greater")


def _masks(region: Any, sample: AttributionSample) -> np.ndarray:
    r"""Masks of the region, bool (1 or batch, \*features)."""
    shape, batch = sample.feature_shape, sample.values.shape[1]
    if isinstance(region, Regions):
        region.check_fits(shape, batch)
        if len(region) != 1:
            raise ValueError(
                f"`region` must be one region, got {len(region)}: ask about each of `regions.as_masks()`, one after "
                "the other"
            )
        return np.stack([region.as_masks(row)[0] for row in range(len(region.masks))])
    if not is_array(region):
        raise TypeError(f"`region` must be a mask, an array of bool, or a metfa.Regions of one, got {shown(region)}")
    mask = to_host(as_array(region, "region"))
    if mask.dtype != bool:
        raise TypeError(f"`region` must be a mask of bool, got {mask.dtype}: write `region > 0`, or `region == label`")
    if mask.shape == shape:
        return mask[None]
    if mask.shape != (batch, *shape):
        raise ValueError(
            f"`region` must have the shape of one map {shape}, or of one for each input {(batch, *shape)}, got "
            f"{mask.shape}"
        )
    return mask
