"""`Evaluation`, the results of a study: tidy rows, tables in the paper's layouts, failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from metfa._base.lazy import needs_extra
from metfa.evaluation._figures import BESIDE_MSTD
from metfa.evaluation.differences import check_alone, difference_table, has_differences
from metfa.evaluation.metric_tables import faithfulness_table, samples_table, stability_table
from metfa.evaluation.selection import Entry, Selection, entry_of, measure_named
from metfa.evaluation.study import Study
from metfa.evaluation.tables import Table
from metfa.evaluation.units import Unit
from metfa.evaluation.worker import COLUMNS

__all__ = ["ALL_COLUMNS", "FIGURES", "Evaluation", "frame_of"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Results of a study.

    Attributes
    ----------
    study : Study
        The study.
    units : tuple of Unit
        One input and one explainer each, in the order of the tables.
    results : dict of str to dict
        Results of the finished units in the store, by address: rows, and the record of how they were made.
    failures : dict of str to dict
        Error and traceback of the failed units, by address.
    """

    study: Study = field(repr=False)
    units: tuple[Unit, ...] = field(repr=False)
    results: Mapping[str, dict[str, Any]] = field(repr=False)
    failures: Mapping[str, dict[str, Any]] = field(repr=False)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each unit, metric and map, with the figures and the keys of the row; None is a missing figure."""
        return [
            {"input": unit.input, "explainer": unit.explainer, **NOTHING, **row}
            for unit in self.units
            if unit.address in self.results
            for row in self.results[unit.address]["rows"]
        ]

    @cached_property
    def inputs(self) -> list[str]:
        """Names of all inputs, also of failed units: the tables count these as missing."""
        return list(dict.fromkeys(unit.input for unit in self.units))

    @cached_property
    def found(self) -> dict[tuple[str, str], dict[Entry, dict[tuple[str, str | None], dict[str, Any]]]]:
        """Rows by (metric, explainer), then by map, then by (input, outer noise)."""
        found: dict[tuple[str, str], Any] = {}
        for row in self.rows:
            maps = found.setdefault((row["metric"], row["explainer"]), {})
            maps.setdefault(entry_of(row), {})[row["input"], row["outer"]] = row
        return found

    @cached_property
    def failed(self) -> dict[tuple[str, str], str]:
        """Errors by (input, explainer)."""
        return {
            (unit.input, unit.explainer): str(self.failures.get(unit.address, {}).get("error", "no result"))
            for unit in self.units
            if unit.address not in self.results
        }

    def to_dataframe(self) -> Any:
        """The rows as a pandas.DataFrame; order and figures depend only on the study.

        The column "aggregate" names the map of a row: write ``df["aggregate"]``, because ``df.aggregate`` is a method
        of pandas.
        """
        return frame_of(self.rows)

    def table(
        self,
        metric: str,
        *,
        explainer: str | None = None,
        sampling: str | None = None,
        n_samples: int | None = None,
        confidence_level: float | None = None,
        against: str | Evaluation | None = None,
        correction: str | None = "holm",
    ) -> Table:
        """A table in the layout of the paper, or of differences with a test of each.

        Parameters
        ----------
        metric : str
            It decides the layout:

            - a metric of maps under an outer noise ("mstd", ...): maps against outer noises, with the average over
              the noises (paper, tables on stability);
            - "faithfulness" or "robust_faithfulness": explainers against insertion, deletion and overall (RI, RD, RO).
              A cell holds the smoothed and the vanilla map, the paper's pair, and then the mean of the samples, where
              the study measures them (paper, tables on faithfulness);
            - any other metric of maps: the same, with one column;
            - a metric of the samples under P ("interval_width", "region_score"): explainers against sampling noises.
        explainer : str, optional
            Only this one. A table of stability is for one explainer; name it unless the study has only one.
        sampling : str, optional
            Only samples under this noise.
        n_samples : int, optional
            Only maps of this number of samples.
        confidence_level : float, optional
            Only smoothed maps of this level.
        against : str or Evaluation, optional
            Show differences in place of the figures themselves, taken for each input:

            - the name of an explainer: every other explainer minus it, map by map;
            - "vanilla" or "mean": the maps that are made of more, minus this map of the same explainer;
            - an Evaluation of another model on the same inputs: this one minus that one, row by row.
        correction : {"holm", "bonferroni", "bh", "by", "none"}
            Of the tests of all differences in the table, at 0.05 together; "none": each at 0.05.

        Returns
        -------
        Table
            Means over inputs with 95 % intervals by Student's t and numbers of inputs; the notes say why figures are
            missing. In the table of mstd, further columns hold what `metfa.metrics.Stability` has, over the inputs that
            have an mstd: the "level" of the maps (mstd has the same units), mstd of maps "rescaled" to [0, 1], "over
            level", and the "correlation" of two draws. If there are constant maps, "constant" holds their share.

            With `against`, a cell holds the mean difference with its interval, and a verdict on the *median*
            difference (`Cell.verdict`): "better" or "worse" if the metric has a better direction, else "higher" or
            "lower"; or "not shown to differ", which is not "equal"; or how many inputs a decision needs at least. p is
            that of the exact two-sided sign test, corrected.

        Raises
        ------
        ValueError
            If the study does not hold what is asked for; the message lists what it holds.

        Notes
        -----
        Inputs are paired by their content and target, not by their place. Only those that have both figures count, and
        equal inputs count once. The sign test is exact for any law of the differences, if the inputs are independent
        draws. Differences of 0, and those below 1e-6 of the figures, which is rounding, are ties: they count for
        neither side. The interval is of the mean, which a few inputs can move, so the two may disagree; a note says so.

        mstd and interval_width have the units of the map. Lower is called better only between maps of one explainer;
        explainers and models are compared by the columns beside mstd, "over level", "rescaled" and "correlation", which
        have no units (averages over the outer noises that change the input).
        """
        measure = measure_named(metric, self.study)
        selection = Selection.of(
            self.study, explainer=explainer, sampling=sampling, n_samples=n_samples, confidence_level=confidence_level
        )
        if against is not None:
            return difference_table(self, metric, measure, selection, against, correction)
        check_alone(correction)
        if measure.under_outer_noise:
            return stability_table(self, measure, explainer, selection)
        if measure.of == "samples":
            return samples_table(self, measure, selection)
        return faithfulness_table(self, metric, measure, selection)

    def tables(self, *, against: str | Evaluation | None = None, correction: str | None = "holm") -> list[Table]:
        """All tables of the study's metrics: first stability, one table for each explainer, then the others.

        With `against`, the tables of differences of all metrics that have such a table, each corrected by itself.
        """
        if against is not None:
            names = [measure.name for measure in self.study.measures if has_differences(self, measure, against)]
            return [self.table(name, against=against, correction=correction) for name in names]
        check_alone(correction)
        made = []
        for measure in self.study.measures:
            if measure.under_outer_noise:
                made += [self.table(measure.name, explainer=name) for name in self.study.methods]
            else:
                made.append(self.table(measure.name))
        return made

    def __repr__(self) -> str:
        done = sum(unit.address in self.results for unit in self.units)  # equal inputs share one result
        return f"Evaluation({done} of {len(self.units)} units, {len(self.failures)} failed)"


def frame_of(rows: list[dict[str, Any]]) -> Any:
    """Rows of an evaluation as a pandas.DataFrame."""
    with needs_extra("`to_dataframe`", "study"):
        import pandas as pd
    return pd.DataFrame(rows, columns=list(ALL_COLUMNS)).astype(
        {**{name: "float64" for name in COLUMNS if name in FIGURES}, "n_samples": "Int64"}
    )


ALL_COLUMNS = ("input", "explainer", *COLUMNS)
NOTHING = dict.fromkeys(COLUMNS)
FIGURES = {"score", "raw", "clean", "mean_of_ratios", "median_of_ratios", "confidence_level", *BESIDE_MSTD}
