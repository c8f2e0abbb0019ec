"""The part of a study that a table or a figure shows: its figures, or the reasons why they are missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.percents import percent
from metfa._base.validation import brief, did_you_mean, is_whole
from metfa.evaluation._measures import Measure

if TYPE_CHECKING:
    from metfa.evaluation.results import Evaluation
    from metfa.evaluation.study import Study
    from metfa.results.until import Until

__all__ = [
    "FAILED",
    "VANILLA",
    "Entry",
    "Selection",
    "entry_label",
    "entry_of",
    "figures",
    "measure_named",
    "only_explainer",
]

FAILED = "failed"

Entry = tuple[str, str | None, int | None, float | None]  # aggregate, sampling noise, N, confidence level
VANILLA: Entry = ("vanilla", None, None, None)


def entry_of(row: dict[str, Any]) -> Entry:
    """The map or the samples of a row."""
    return row["aggregate"], row["sampling"], row["n_samples"], row["confidence_level"]


@dataclass(frozen=True)
class Selection:
    """The part of a study that a table shows."""

    explainers: tuple[str, ...]
    noises: tuple[str, ...]
    sizes: tuple[int | None, ...]
    levels: tuple[float, ...]
    rule: Until | None = None

    @classmethod
    def of(
        cls,
        study: Study,
        *,
        explainer: str | None = None,
        sampling: str | None = None,
        n_samples: int | None = None,
        confidence_level: float | None = None,
    ) -> Selection:
        """The named part, or everything; raises if the study has nothing of that name."""
        return cls(
            _chosen("explainer", explainer, tuple(study.methods)),
            _chosen("sampling", sampling, tuple(study.noises)),
            _size_chosen(n_samples, study),
            _chosen("confidence_level", confidence_level, study.levels),
            study.rule,
        )

    def size_label(self, n: int | None) -> str:
        """A sample size in words, or the rule that determines it."""
        return f"N = {n}" if self.rule is None else f"N by {self.rule.described}"

    def entries(self, maps: Sequence[str]) -> list[Entry]:
        """The selected maps, in the order in which they are made."""
        found = [VANILLA] if "vanilla" in maps else []
        for noise in self.noises:
            for n in self.sizes:
                found += [("mean", noise, n, None)] if "mean" in maps else []
                found += [("smoothed", noise, n, level) for level in self.levels if "smoothed" in maps]
        return found

    def label(self, noise: str | None, n: int | None, level: float | None) -> list[str]:
        """Noise, sample size and level; each is shown only if there are several."""
        shown = [f"P = {noise}"] if len(self.noises) > 1 and noise is not None else []
        shown += [f"N = {n}"] if len(self.sizes) > 1 and n is not None else []
        return [*shown, percent(level)] if len(self.levels) > 1 and level is not None else shown


def entry_label(entry: Entry, selection: Selection) -> str:
    """Name of a map with its noise, and with N and level if there are several."""
    aggregate, noise, n, level = entry
    if noise is None:
        return aggregate
    return ", ".join([aggregate, f"P = {noise}", *selection.label(None, n, level)])


def _size_chosen(n: int | None, study: Study) -> tuple[int | None, ...]:
    if n is not None and study.rule is not None:
        raise ValueError(f"`n_samples` must be left out, because N is set by {study.rule.described}, got {n!r}")
    return _chosen("n_samples", n, study.sizes)


def _chosen(name: str, value: Any, known: tuple[Any, ...]) -> tuple[Any, ...]:
    if value is None:
        return known
    number = is_whole(value) or isinstance(value, float | np.floating)
    for entry in known if number or isinstance(value, str) else ():
        if entry == value or (number and isinstance(entry, float) and math.isclose(entry, float(value))):
            return (entry,)
    allowed = f"one of {', '.join(map(str, known))}" if known else "left out, because the study has none"
    raise ValueError(f"`{name}` must be {allowed}, got {brief(value)}{did_you_mean(value, list(map(str, known)))}")


def only_explainer(name: str | None, study: Study) -> str:
    """The named explainer, or the only one."""
    first, *others = Selection.of(study, explainer=name).explainers
    if others:
        raise ValueError(f"`explainer` must be one of {', '.join([first, *others])}: each has figures of its own")
    return first


def measure_named(metric: str, study: Study) -> Measure:
    """The study's measure of that name, or the measure that makes the metric of that name."""
    known = {name: measure for measure in study.measures for name in (measure.name, *measure.makes)}
    if not isinstance(metric, str) or metric not in known:
        raise ValueError(
            f"`metric`: the study has no {brief(metric)}{did_you_mean(metric, known)}; it has {', '.join(known)}"
        )
    return known[metric]


def figures(
    evaluation: Evaluation, metric: str, explainer: str, entry: Entry, outer: str | None, column: str = "score"
) -> list[float | str]:
    """One figure an input, or the reason why it is missing."""
    rows = evaluation.found.get((metric, explainer), {}).get(entry, {})
    return [
        FAILED if (name, explainer) in evaluation.failed else _figure(rows.get((name, outer)), column)
        for name in evaluation.inputs
    ]


MISSING = {
    "over_level": "a level that is not above 0",
    "correlation": "fewer than two maps that vary",
    "rescaled": "maps of one feature",
}


def _figure(row: dict[str, Any] | None, column: str) -> float | str:
    if row is None:
        return "not measured"
    if row["score"] is None and column != "constant":  # a level is used only for inputs that have a score
        return row["reason"] or "no reason recorded"
    return row[column] if row[column] is not None else row["reason"] or MISSING.get(column, "no reason recorded")
