"""What an evaluation found: tidy rows, tables in the paper's layouts, failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from metfa._lazy import needs_extra
from metfa.evaluation._measures import MEASURES
from metfa.evaluation.study import Study
from metfa.evaluation.tables import (
    Table,
    faithfulness_table,
    figures_of,
    metrics_of,
    require_metric,
    samples_table,
    stability_table,
)
from metfa.evaluation.units import Unit
from metfa.evaluation.worker import COLUMNS

__all__ = ["Evaluation"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Results of a study.

    Attributes
    ----------
    study : Study
        What was asked.
    units : tuple of Unit
        One input and one explainer each, in the order of the tables.
    results : dict of str to dict
        What the store holds of the finished ones, by address: rows, and the record of how they were made.
    failures : dict of str to dict
        Error and traceback of those that failed, by address.
    """

    study: Study = field(repr=False)
    units: tuple[Unit, ...] = field(repr=False)
    results: Mapping[str, dict[str, Any]] = field(repr=False)
    failures: Mapping[str, dict[str, Any]] = field(repr=False)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each unit, metric and map: figures and where they belong; None where there is none."""
        return [
            {"input": unit.input, "explainer": unit.explainer, **NOTHING, **row}
            for unit in self.units
            if unit.address in self.results
            for row in self.results[unit.address]["rows"]
        ]

    @cached_property
    def inputs(self) -> list[str]:
        """Names of the inputs, those included whose units failed: the tables count them as missing."""
        return list(dict.fromkeys(unit.input for unit in self.units))

    @cached_property
    def figures(self) -> dict[tuple[str, str], Any]:
        """Scores by (metric, explainer), then by map, then by (input, outer noise)."""
        return figures_of(self.rows)

    def to_dataframe(self) -> Any:
        """The rows as a pandas.DataFrame, in an order and with figures that depend on the study alone."""
        with needs_extra("`to_dataframe`", "study"):
            import pandas as pd
        return pd.DataFrame(self.rows, columns=["input", "explainer", *COLUMNS]).astype(
            {**{name: "float64" for name in COLUMNS if name in FIGURES}, "n_samples": "Int64"}
        )

    def table(self, metric: str, *, explainer: str | None = None, differences: bool = False) -> Table:
        """A table in the layout of the paper.

        Parameters
        ----------
        metric : str
            Of maps under an outer noise ("mstd", ...): sampling noises against outer noises, with the average over the
            latter (paper, tables on stability). "faithfulness" or "robust_faithfulness": explainers against insertion,
            deletion and overall (RI, RD, RO), each as a pair of smoothed and vanilla map (paper, tables on
            faithfulness). Any other metric of maps likewise, with one column. Metrics of the samples under P
            ("interval_width", "region_score"): explainers against sampling noises.
        explainer : str, optional
            Whose stability; may be left out where there is one.
        differences : bool
            Smoothed minus vanilla, input by input, in place of either: its standard error counts that both are of the
            same inputs.

        Returns
        -------
        Table
            Means over inputs with standard errors, and how many inputs each counts.
        """
        for name in metrics_of(metric):
            require_metric(name, self)
        measure = MEASURES.get(metric)  # one of the rows of several, or one of the user's, is of maps
        of_samples = measure is not None and measure.of == "samples"
        if differences and of_samples:
            raise ValueError(f"`differences` are between maps, and {metric} is of samples")
        if differences and "vanilla" not in self.study.maps:
            raise ValueError("`differences` are from the vanilla map, which is not among the study's `aggregates`")
        if measure is not None and measure.under_outer_noise:
            return stability_table(self, metric, explainer=explainer, differences=differences)
        if explainer is not None:
            raise ValueError(f"`explainer`: the table of {metric} has all explainers, got {explainer!r}")
        return samples_table(self, metric) if of_samples else faithfulness_table(self, metric, differences=differences)

    def tables(self) -> list[Table]:
        """Every table that the study's metrics make: stability explainer by explainer, then the others."""
        made, measured = [], {name for name, _ in self.figures}
        for measure in self.study.measures:
            if measured.isdisjoint(metrics_of(measure.name)):
                continue
            if measure.under_outer_noise:
                made += [self.table(measure.name, explainer=name) for name in self.study.methods]
            else:
                made.append(self.table(measure.name))
        return made

    def __repr__(self) -> str:
        done = sum(unit.address in self.results for unit in self.units)  # equal inputs share their results
        return f"Evaluation({done} of {len(self.units)} units, {len(self.failures)} failed)"


NOTHING = dict.fromkeys(COLUMNS)
FIGURES = {"score", "raw", "clean", "mean_of_ratios", "median_of_ratios", "level", "constant", "confidence_level"}
