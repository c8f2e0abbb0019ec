"""The result of sampling: the questions that samples answer without the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa import stats
from metfa._base.validation import check_flag
from metfa.results.cautions import FLIPS_FROM
from metfa.results.certified import certified, ranks_within
from metfa.results.guarantees import Guarantee, guarantee
from metfa.results.outlook import Outlook, outlook
from metfa.results.shown import Shown
from metfa.results.stopping import of_a_fixed_number

if TYPE_CHECKING:
    from metfa.results.summary import Summary

__all__ = ["AttributionSample"]


@dataclass(frozen=True, repr=False, eq=False)
class AttributionSample(Shown):
    r"""N attributions of each input under noise, with the exact statistics of their medians.

    Made by `metfa.explain` or `metfa.load`; arrays are NumPy and read-only.

    Attributes
    ----------
    values : ndarray, (n_samples, batch, \*features)
        The samples, or a `population`. For a run with a store, a read-only memory map of the file.
    inputs : ndarray, tuple or dict of ndarrays, or list
        The clean inputs, on the host.
    target : tuple
        What was explained, one entry for each input.
    vanilla : ndarray, (batch, \*features), or None
        The attribution of the clean input; None for a `population`, which has none.
    scores : ndarray or None, (batch, classes)
        The model's scores of the clean input.
    predictions : ndarray or None, (n_samples, batch)
        Class predicted on every noisy input, where explainer or model gave scores.
    sample_ids, input_names : tuple
        Addresses of the random streams.
    feature_names : tuple of str or None
        Names of the features along one axis, where they have any.
    provenance : dict
        Explainer, noise, seed, versions, time: the `seconds` of the last call, and the `maps_made` in them.
    stopping : Stopping or None
        How `metfa.Until` found this number of samples; None where the number was fixed beforehand.
    default_terms : Terms or None
        Terms of its decisions where nothing else is given, such as the threshold 0 for differences; they are saved
        with it. None: the usual ones, see `terms`.
    regions : Regions or None
        What its features are, where they are regions (see `over`).
    population : Population or None
        What its samples are, if they are rows of a data set (`across_inputs`) or models (`metfa.across_models`).
    pairs_of : tuple of str or None
        Names of the features whose pairs are its features (see `pairwise`).
    pair : (AttributionSample, AttributionSample) or None
        Before and after, where the values are differences (`metfa.compare`): after minus before, copy by copy.
    """

    def confidence_interval(
        self, confidence_level: float | None = None, *, ranks: stats.Ranks | None = None, simultaneous: bool = False
    ) -> stats.ConfidenceInterval:
        r"""Exact interval for each feature's median: lower and upper bound maps, (batch, \*features).

        Parameters
        ----------
        confidence_level : float, default: 0.95
            Level asked for; the result carries the exact level reached, at least this.
        ranks : stats.Ranks, optional
            Order statistics to use instead, such as ``stats.paper_ranks(n)``; give only one of the two.
        simultaneous : bool
            Whether the level is that of all features of an input together, whatever their dependence: the probability
            that any of its intervals misses. By default each feature has the level.

        Raises
        ------
        ValueError
            If there are too few samples for the level; the message names the smallest number. Where `any_time` holds if
            `ranks` are for a number that was fixed beforehand; the usual ones are those of `stats.sequence_ranks`.
        """
        m = self.n_features if check_flag(simultaneous, "simultaneous") and self.n_features else 1
        if simultaneous and ranks is not None:
            raise ValueError("`ranks` have a level of their own: give only one of `ranks` and `simultaneous`")
        self._look_at_intervals()
        level = 0.95 if confidence_level is None else confidence_level
        if ranks is None:
            return stats.median_interval(self.values, ranks=self._ranks_at(level, m))
        if self.any_time and isinstance(ranks, stats.Ranks) and not ranks.sequential:
            raise of_a_fixed_number("`ranks` are", level)
        return stats.median_interval(self.values, confidence_level, ranks=ranks)

    def certified_radius(
        self,
        threshold: Any = None,
        *,
        alpha: float | None = None,
        correction: str | None = None,
        split: int | None = None,
    ) -> np.ndarray:
        r"""L2 change of the input within which each feature stays significant, (batch, \*features) float64.

        Gaussian noise only. For every change of the input that is shorter than the radius, the median of the
        explanation under the same noise stays on the side of the threshold where `significance_map` puts it. This holds
        with probability at least 1 - alpha for each feature and side, or for all of them as `correction` says.

        Parameters
        ----------
        threshold, alpha, split
            As for `terms`; the threshold must be a number that was fixed before the samples, or a rule with `split`.
            A number found by trying several on these samples passes for a fixed one, and is wrong in up to .21 of runs.
        correction : {None, "none", "bonferroni", "bh", "e-bh", "closed-e-bh"}
            As for `terms`. For the last three: if r of m features are marked on a side, each of their bounds has the
            level r alpha / m; then a mark of closed e-BH may have the radius 0.

        Returns
        -------
        ndarray
            In the units of the input; with `metfa.noise.in_pixel_space` in pixel values. 0 where a feature is
            undecided.

        Raises
        ------
        ValueError
            For another noise, too few samples, or a threshold that depends on the samples that are tested.

        Notes
        -----
        Randomised smoothing of Cohen et al. 2019, for each feature: see `stats.certified_radius`. Clamping counts as a
        part of the model; the class is fixed. It is about medians, not about the prediction, nor a map of N samples.
        """
        return certified(self, self.terms(threshold, alpha=alpha, correction=correction, split=split))[0]

    def certified_interval(self, radius: float, confidence_level: float = 0.95) -> stats.ConfidenceInterval:
        r"""Interval for each median that holds for all changes of the input within a radius, (batch, \*features).

        Gaussian noise with one standard deviation only, else a ValueError; see `stats.certified_ranks`.

        Parameters
        ----------
        radius : float
            Largest L2 change of the input, in its units (with `metfa.noise.in_pixel_space` in pixel values); 0 gives
            `confidence_interval`.
        confidence_level : float
            Level asked for.
        """
        self._look()
        return stats.median_interval(self.values, ranks=ranks_within(self, radius, confidence_level))

    def plan(
        self,
        undecided: float,
        threshold: Any = None,
        *,
        alpha: float | None = None,
        correction: str | None = None,
        split: int | None = None,
        max_samples: int = 10_000,
    ) -> Outlook:
        """How many samples it will likely take until at most a share of each input's features is undecided.

        An extrapolation, no promise. For photographs it is within a factor of 1.5 of what it takes. It is for a **new**
        call with another `rng`: the present samples chose it. After `metfa.Until`, and by e-values, more may be joined.

        Parameters
        ----------
        undecided : float
            The share, in [0, 1).
        threshold, alpha, correction, split
            As for `terms`.
        max_samples : int
            Most samples that are tried.

        Returns
        -------
        Outlook
            The likely number, its cost in explanations and seconds, and the shares at smaller numbers.
        """
        terms = self.terms(threshold, alpha=alpha, correction=correction, split=split)
        return outlook(self, undecided, terms, max_samples)

    def guarantee(
        self,
        region: Any,
        threshold: Any = None,
        *,
        alpha: float | None = None,
        dependence: str = "any",
        split: int | None = None,
    ) -> Guarantee:
        r"""At least how many features of a region are important, or unimportant; also of one chosen after a look.

        Parameters
        ----------
        region : array of bool, or Regions
            A mask (\*features), or one for each input (batch, \*features); or a `Regions` that holds one.
        threshold, alpha, split
            As for `terms`; the threshold must be a number that was fixed before the samples, or a rule with `split`.
        dependence : {"any", "positive"}
            What is assumed of the features, see `Guarantee`; "any" where `any_time` holds.

        Raises
        ------
        ValueError
            For a threshold that depends on the samples that are tested, and for too few samples.
        """
        terms = self.terms(threshold, alpha=alpha, correction="none", split=split)
        self._look()
        return guarantee(self, region, terms, dependence)

    def summary(
        self,
        threshold: Any = None,
        *,
        alpha: float | None = None,
        correction: str | None = None,
        split: int | None = None,
        confidence_level: float = 0.95,
        flips_from: float = FLIPS_FROM,
    ) -> tuple[Summary, ...]:
        """The figures to read first, one summary for each input.

        Parameters
        ----------
        threshold, alpha, correction, split
            As for `terms`.
        confidence_level : float
            As for `confidence_interval`.
        flips_from : float
            Share of noisy inputs with another prediction, from which on the summary begins with a caution.
        """
        from metfa.results.summary import summarise

        terms = self.terms(threshold, alpha=alpha, correction=correction, split=split)
        return summarise(self, self.decide(terms), confidence_level, flips_from)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a new folder `path` (arrays as .npy, a manifest last), all or nothing; see `metfa.load`.

        `overwrite` replaces a saved result that stands there; without it, that is a FileExistsError.
        """
        from metfa.results.files import save

        return save(self, path, overwrite=overwrite)
