"""Results as the tables and arrays of other libraries: pandas, shap, xarray."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from metfa.results.decided import Decided

if TYPE_CHECKING:
    import pandas as pd
    import shap
    import xarray  # pyright: ignore[reportMissingImports]

    from metfa.results.sample import AttributionSample

__all__ = ["Exported"]


@dataclass(frozen=True, repr=False, eq=False)
class Exported(Decided):
    """What an `AttributionSample` gives to other libraries."""

    def to_dataframe(
        self,
        threshold: Any = None,
        *,
        alpha: float | None = None,
        correction: str | None = None,
        split: int | None = None,
        confidence_level: float = 0.95,
    ) -> pd.DataFrame:
        r"""A pandas.DataFrame with a line for each input and feature: score, interval, p-values, mark.

        Arguments are those of `summary`. Its ``attrs`` say what the numbers are; "caution" what must not be missed.

        Returns
        -------
        pandas.DataFrame
            "score" is the smoothed score, "value" the input's own number (of a table), "above" and "below" count the
            ``n`` tested samples. "mark" (+1, 0, -1; in words "kind") is what `significance_map` says. It is decided
            by the one-sided p-values, which are not corrected. Features of maps have "index_0", "index_1". Differences
            have "before" and "after". Ends of intervals are NaN where there are too few samples for the level.
        """
        from metfa.results.long_form import long_form

        terms = self.terms(threshold, alpha=alpha, correction=correction, split=split)
        return long_form(cast("AttributionSample", self), self.decide(terms), confidence_level)

    def to_xarray(
        self,
        threshold: Any = None,
        *,
        alpha: float | None = None,
        correction: str | None = None,
        split: int | None = None,
        confidence_level: float = 0.95,
    ) -> xarray.Dataset:
        r"""An xarray.Dataset with the samples, scores, intervals, p-values and marks on named axes.

        Arguments and names are those of `to_dataframe`; xarray must be installed.

        Returns
        -------
        xarray.Dataset
            "values" (sample, input, \*features) are the samples, without a copy; all others (input, \*features) or
            (input,). Features are the axis "feature", with names if they have any, or for maps "index_0", "index_1".
            Its ``attrs`` are plain texts and numbers, so that ``to_netcdf`` can write them.
        """
        from metfa.results.named_axes import dataset

        terms = self.terms(threshold, alpha=alpha, correction=correction, split=split)
        return dataset(cast("AttributionSample", self), self.decide(terms), confidence_level)

    def to_shap(self, *, confidence_level: float = 0.95) -> shap.Explanation:
        r"""A shap.Explanation of the smoothed scores, for the figures and functions of shap.

        Parameters
        ----------
        confidence_level : float
            Level of the intervals.

        Returns
        -------
        shap.Explanation
            ``values`` (batch, \*features) are the smoothed scores, or medians where there are too few samples for the
            level; ``lower_bounds`` and ``upper_bounds`` the exact intervals, or None. ``error_std`` is the standard
            deviation of the samples (n - 1), as SHAP's permutation explainer gives that of its permutations: how far
            one explanation lies from their mean. It is no standard error of ``values``. ``data`` are the inputs, with
            their channels last where maps have none, or the words of a text, and None where a score has no place in
            them; ``display_data`` has the labels of a frame's columns.

        Notes
        -----
        There are no ``base_values``. The scores of one input do not add up to its prediction, as each is a median over
        noisy copies. So a waterfall of shap, which draws such a sum, does not fit; bars and points do.
        """
        from metfa.results.of_shap import explanation

        return explanation(cast("AttributionSample", self), confidence_level)
