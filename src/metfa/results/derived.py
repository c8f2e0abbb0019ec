"""Results that are made of a result, without the model: of regions, of scaled maps, of one input, of two calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa.results.parts import input_of, joined
from metfa.results.pooling import pooled_sample
from metfa.results.regions import regions_of
from metfa.results.samples import Samples
from metfa.results.scaled import scaled_sample
from metfa.results.terms import Terms

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Derived"]


@dataclass(frozen=True, repr=False, eq=False)
class Derived(Samples):
    """What an `AttributionSample` gives that is such a result again."""

    def over(self, regions: Any = None, *, how: str | None = None, against: Any = None) -> Self:
        r"""The samples of regions: the same kind of result, whose features are the regions.

        Every statement holds for them as it stands: tests, intervals, smoothed values, corrections, e-values,
        certificates. With ``against="rest"`` the question needs no threshold: does a region get more, or less, than the
        rest of the picture?

        Parameters
        ----------
        regions : Regions or array
            A `Regions`, or what it takes as `masks`: labels (\*features) or masks, bool (regions, \*features); or one
            mask, bool (\*features), or a list of them. They must not depend on these samples. None: those of
            `metfa.Until`.
        how, against
            Instead of those of `regions`; see `Regions`.

        Returns
        -------
        AttributionSample
            Samples (n, batch, regions) in float64.

        Raises
        ------
        TypeError, ValueError
            For regions that are not of the features' shape, empty, or have no rest.

        Examples
        --------
        >>> import numpy as np, metfa
        >>> sample = metfa.explain(lambda x, target: x**2, np.array([[3.0, 2.0, 1.0, 0.0]]), 0,
        ...                        noise=metfa.noise.Uniform(0.2), n_samples=20, rng=0)
        >>> sample.over(np.array([0, 0, 1, 1]), against="rest").significance_map(correction="holm")
        array([[ 1, -1]], dtype=int8)
        """
        if regions is None and self.stopping is not None:
            regions = self.stopping.over
        return pooled_sample(self, regions_of(regions, how, against, self.feature_shape))

    def scaled(self, scale: str) -> Self:
        """The samples with each map scaled by itself, so that a fixed number means the same for every input.

        Parameters
        ----------
        scale : {"mean", "share", "rank"}
            "mean": a score over the mean of its map's absolute scores, so that 2 is twice the mean. "share": its share
            of their sum. "rank": its rank in its map over the number of features, in (0, 1], the mean rank where scores
            are equal; above 0.95, the default threshold, is in the top 5 %.

        Returns
        -------
        AttributionSample
            In float64 and in memory. `metfa.Until` did not test these scores: its thresholds are dropped, and tests
            still hold at any time. Certificates hold too, as each scaled map is a function of its noisy input.

        Raises
        ------
        ValueError
            For "mean" and "share" of a map of zeros, and for differences of regions.
        """
        return scaled_sample(self, scale)

    def of_input(self, index: int) -> Self:
        """The samples of one input of the batch alone, as a batch of one."""
        return input_of(self, index)

    def concat(self, other: Self) -> Self:
        """Join samples of the same inputs from two calls (see `first_sample` of `metfa.explain`), in memory.

        Parts that were joined before anybody looked at one are one sample of a fixed size, with exact tests. After a
        look (`looks`; one in another session only if the result was saved after it) e-values decide, and intervals hold
        at any time: the sign test after each of ten joins was wrong for .28 of the null features, .04 at a fixed size.
        Samples that are added to those of `metfa.Until` must come later. All are tested; `stopping` counts the added.

        Raises
        ------
        ValueError
            If sample ids repeat, if inputs, target, explainer, noise or seed differ, or if only `other` is of `Until`.
        """
        if not isinstance(other, Derived):
            raise TypeError(f"`other` must be an AttributionSample, got {type(other).__name__}")
        return joined(self, other)

    def with_unit(self, unit: float | np.ndarray) -> Self:
        """The same samples, decided in another unit, a number or one for each input; 1 for probabilities."""
        usual = self.default_terms or Terms(0.0 if self.signed else self.usual_rule)
        return replace(self, default_terms=replace(usual, unit=unit))
