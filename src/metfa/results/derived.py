"""Results that are made of a result, without the model: of regions, of scaled maps, of one input, of two calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa.results.across import across_rows
from metfa.results.joining import input_of, joined
from metfa.results.pairs import paired
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
            of their sum. "rank": its rank in its map over the number of features, in (0, 1]; above 0.95, the default
            threshold, is in the top 5 %. A score has the mean rank of all scores within a hundred-thousandth of the
            map's largest, which is how far kernels round (more in half precision): dust about 0 has one rank, and a
            smooth map keeps its order, because each score has a zone of its own.

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

        Two results of `across_inputs` are joined along their rows: a data set that was explained in parts.

        Raises
        ------
        ValueError
            If sample ids repeat, if inputs, target, explainer, noise or seed differ, or if only `other` is of `Until`.
        """
        if not isinstance(other, Derived):
            raise TypeError(f"`other` must be an AttributionSample, got {type(other).__name__}")
        return joined(self, other)

    def across_inputs(self, of: str = "vanilla", *, absolute: bool | None = None) -> Self:
        r"""The rows of a data set as samples: one number of each row and feature, for statements about a population.

        Global importance with exact error bars: is the median over the population of a feature's absolute score above
        the threshold, and in which interval does it lie? Every statement is about the law of this one number over the
        population of which the rows are a sample. The noisy copies of a row are no further units: their number is
        taken first, and never counted as rows. (With 20 rows of 20 copies each, intervals from all 400 scores together
        held the median in .41 of data sets, for a level of .95, and those from one number a row in .97.)

        Parameters
        ----------
        of : {"vanilla", "mean", "smoothed", "median"}
            Which number of a row: its score without noise, or the mean, the smoothed score or the median of its
            samples. Another number has another law. After `metfa.Until`, the last three are of as many samples as it
            took; this is no choice of rows.
        absolute : bool, optional
            Whether to take the absolute value of this number. By default where the scores are `signed`, unless they are
            differences, because scores of both signs cancel over rows.

        Returns
        -------
        AttributionSample
            Values (rows, 1, \*features). Its `population` says what the rows are. There is no map without noise
            (`vanilla`) and no certificate, and sampling by a rule is forgotten, as the number of rows did not depend on
            it. Default terms: those of the result, where they are no thresholds of single inputs; for absolute values
            the usual natural break in place of 0.

        Raises
        ------
        ValueError
            If rows have the same content, which are no new units: give rows that are different people or things an own
            `input_names` (`metfa.Run`). For words of texts, and for regions that lie elsewhere in each row and have no
            names: features must mean the same in each row.

        Warns
        -----
        MetfaWarning
            For features along several axes that are no regions, such as pixels, which mean the same in aligned pictures
            alone.

        Notes
        -----
        Masks of regions may differ from row to row, as those of `metfa.regions.superpixels` do, where their names say
        what corresponds. A data set that was explained in parts is joined by `concat`:
        ``first.across_inputs().concat(second.across_inputs())``.

        Examples
        --------
        >>> import numpy as np, metfa
        >>> rows = np.random.default_rng(0).normal(size=(40, 3))
        >>> sample = metfa.explain(lambda x, target: x * np.array([3.0, 1.0, 0.0]), rows, 0,
        ...                        noise=metfa.noise.Gaussian(0.1), n_samples=10, rng=0)
        >>> population = sample.across_inputs()
        >>> population.significance_map(1.0)
        array([[ 1, -1, -1]], dtype=int8)
        >>> population.ranking().marks
        array([[ 0,  1,  1],
               [-1,  0,  1],
               [-1, -1,  0]], dtype=int8)
        """
        return across_rows(self, of, absolute)

    def pairwise(self) -> Self:
        """The differences of all pairs of features in the same sample: which of two has the higher score?

        Returns
        -------
        AttributionSample
            Samples (n, batch, pairs) in float64, of the first of two features less the second, for the pairs (0, 1),
            (0, 2), ..., (1, 2), .... They are named "a - b", and compared with 0. A statement is about the median of
            the difference, which is not the difference of the medians. By default the alpha is that of all pairs and
            both sides of an input together ("bonferroni", under any dependence and also after `metfa.Until`): with
            probability at least 1 - alpha no pair is called the wrong way round.

        Raises
        ------
        ValueError
            For more than 100 features, of which `over` makes fewer, and for differences.
        """
        return paired(self)

    def with_unit(self, unit: float | np.ndarray) -> Self:
        """The same samples, decided in another unit, a number or one for each input; 1 for probabilities."""
        usual = self.default_terms or Terms(0.0 if self.signed else self.usual_rule)
        return replace(self, default_terms=replace(usual, unit=unit))
