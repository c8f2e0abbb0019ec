"""Tables of paired differences: between explainers, between maps of one explainer, or between two studies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from metfa._base.percents import counted, percent
from metfa._base.validation import brief
from metfa.evaluation._measures import Measure
from metfa.evaluation.directions import better_of
from metfa.evaluation.metric_tables import average, described, samples_shown, terms_shown
from metfa.evaluation.notes import about_failures
from metfa.evaluation.paired import checked_correction, minus, verdicts
from metfa.evaluation.references import MAPS, Reference, check_alike, identities, reference_of, refusal_of
from metfa.evaluation.selection import VANILLA, Entry, Selection, entry_label, figures
from metfa.evaluation.tables import Cell, Table

if TYPE_CHECKING:
    from metfa.evaluation.results import Evaluation

__all__ = ["check_alone", "difference_table", "has_differences"]

WITHOUT_UNITS = ("over_level", "rescaled", "correlation")  # beside mstd, see `metrics.Stability`

RANGE = (
    "a map of a smaller range has a smaller mstd, and smoothing makes the range smaller: see rescaled and correlation"
)

Figures = list[float | str]


@dataclass(frozen=True)
class _Column:
    """A column of a table: its figures in an evaluation, for an explainer and a map."""

    name: str
    metric: str
    of: Callable[[Evaluation, str, Entry], Figures]


def check_alone(correction: Any) -> None:
    """Raise if a correction was given without `against`: tables of means have no tests."""
    if correction != "holm":
        raise ValueError(f"`correction` is of the tests of differences: give `against` too, got {brief(correction)}")


def has_differences(evaluation: Evaluation, measure: Measure, against: Any) -> bool:
    """Whether a measure of a study differs between what is compared; raises for an unknown `against`."""
    reference = reference_of(evaluation, against)
    return refusal_of(measure, reference) is None


def difference_table(
    evaluation: Evaluation, metric: str, measure: Measure, selection: Selection, against: Any, correction: Any
) -> Table:
    """Explainers and their maps against the columns of the metric, each minus the reference; see `Evaluation.table`."""
    correction, reference = checked_correction(correction), reference_of(evaluation, against)
    refusal = refusal_of(measure, reference)
    if refusal is not None:
        raise ValueError(refusal)
    if reference.evaluation is not evaluation:
        check_alike(evaluation, reference.evaluation, metric)
    rows = _rows(evaluation, measure, selection, reference)
    columns = _columns(evaluation, metric, measure, selection)
    found, better = [], []
    for explainer, entry in rows:
        for column in columns:
            mine = _by_input(evaluation, column.of(evaluation, explainer, entry))
            other = column.of(reference.evaluation, *reference.beside(explainer, entry))
            found.append(
                minus(
                    mine,
                    _by_input(reference.evaluation, other),
                    reference.name,
                    "not among the inputs and targets of the other study",
                )
            )
            better.append(better_of(column.metric, same_units=reference.same_units))
    decided = verdicts(found, better, correction)
    cells = [Cell.of(values, verdict) for values, verdict in zip(found, decided, strict=True)]
    lines = [cells[start : start + len(columns)] for start in range(0, len(cells), len(columns))]
    labels = tuple(", ".join([explainer, *_label(entry, measure, selection)]) for explainer, entry in rows)
    names = tuple(column.name for column in columns)
    table = Table(
        f"{metric.replace('_', ' ')} minus that of {reference.name}", "explainer", names, labels,
        tuple(tuple((cell,) for cell in line) for line in lines),
    )  # fmt: skip
    explainers, entries = [explainer for explainer, _ in rows], [entry for _, entry in rows]
    notes = [*_about_reference(evaluation, reference, rows), *_about_inputs(evaluation), *_about_medians(table)]
    if measure.name == "mstd":
        notes += [RANGE] if reference.map is not None else []
        notes += _about_constant(evaluation, rows, reference)
    if measure.of == "samples":  # of all noises, which stand in the columns
        entries = [("samples", noise, *entry[2:]) for entry in entries for noise in selection.noises]
    details = samples_shown(entries, selection, noise=measure.of != "samples")
    details += terms_shown(measure, evaluation.study) if measure.decides else []
    if measure.of in ("maps under noise", "outer samples", "predictions"):
        details.append(f"{evaluation.study.n_outer} draws of each outer noise")
    m = sum(verdict is not None for verdict in decided)
    by = f"corrected by {correction} over {counted(m, 'difference')} (the intervals are not)" if correction else (
        "not corrected")  # fmt: skip
    closing = [*_directions(columns, better), f"p: exact sign test of the median difference, {by}"]
    table = replace(table, notes=tuple(notes), against=reference.name)
    return described(table, evaluation, measure, details, explainers, entries, closing=closing)


def _rows(
    evaluation: Evaluation, measure: Measure, selection: Selection, reference: Reference
) -> list[tuple[str, Entry]]:
    if measure.of == "samples":
        entries: list[Entry] = [("samples", None, n, level) for n in selection.sizes
                                for level in (selection.levels if measure.by_level else (None,))]  # fmt: skip
    else:
        entries = [VANILLA] if measure.of == "predictions" else selection.entries(evaluation.study.maps)
    if reference.map is not None:
        entries = [entry for entry in entries if MAPS.index(entry[0]) > MAPS.index(reference.map)]
        if not entries:
            raise ValueError(f"`against` {reference.map!r}: the study has no map that is made of more")
    explainers = [name for name in selection.explainers if name != reference.explainer]
    if not explainers:
        raise ValueError(f"`against` {reference.explainer!r} is the `explainer` of the table: name another one")
    known = [name for name in explainers if name in reference.evaluation.study.methods]
    if not known:
        raise ValueError(f"`against`: the other study has none of the explainers {', '.join(explainers)}")
    return [(explainer, entry) for explainer in known for entry in entries]


def _columns(evaluation: Evaluation, metric: str, measure: Measure, selection: Selection) -> list[_Column]:
    """The columns of a measure: its metrics under each outer noise, or its figure under each sampling noise."""
    noises = evaluation.study.outer_noises
    if measure.of == "samples":
        return [_of_samples(f"P = {noise}", metric, noise) for noise in selection.noises]
    wanted = measure.makes if measure.makes and metric == measure.name else (metric,)
    if measure.of == "maps":
        return [_under(name, name, [None]) for name in wanted]
    noisy = [name for name, noise in noises.items() if noise is not None]
    if measure.under_outer_noise:
        columns = [_under(outer, metric, [outer]) for outer in noises]
        if len(noises) > 1:
            columns.append(_under("average", metric, list(noises)))
        if metric == "mstd":
            beside = [name.replace("_", " ") for name in WITHOUT_UNITS]
            columns += [
                _under(name, name, noisy or list(noises), column)
                for name, column in zip(beside, WITHOUT_UNITS, strict=True)
            ]
        return columns
    several = len(noisy) > 1
    return [_under(f"{name}, O = {outer}" if several else name, name, [outer]) for name in wanted for outer in noisy]


def _under(name: str, metric: str, outers: list[Any], column: str = "score") -> _Column:
    """A metric, or what stands beside it, averaged over outer noises input by input."""
    asked = "mstd" if column in WITHOUT_UNITS else metric
    return _Column(name, metric, lambda of, explainer, entry: average(
        [figures(of, asked, explainer, entry, outer, column) for outer in outers]
    ))  # fmt: skip


def _of_samples(name: str, metric: str, noise: str) -> _Column:
    return _Column(name, metric, lambda of, explainer, entry: figures(
        of, metric, explainer, ("samples", noise, *entry[2:]), None
    ))  # fmt: skip


def _by_input(evaluation: Evaluation, values: Figures) -> Mapping[Any, float | str]:
    """Figures by the content and the target of the input: equal inputs have equal figures and count once."""
    return dict(zip(identities(evaluation).values(), values, strict=True))


def _label(entry: Entry, measure: Measure, selection: Selection) -> list[str]:
    return selection.label(None, *entry[2:]) if measure.of == "samples" else [entry_label(entry, selection)]


def _directions(columns: list[_Column], better: list[str | None]) -> list[str]:
    found = {column.metric: side for column, side in zip(columns, better, strict=False) if side is not None}
    if not found:
        return []
    if len({column.metric for column in columns}) == 1:
        return [f"better: {next(iter(found.values()))}"]
    return ["better: " + ", ".join(f"{side} {metric}" for metric, side in found.items())]


def _about_reference(evaluation: Evaluation, reference: Reference, rows: list[tuple[str, Entry]]) -> list[str]:
    """What failed of the reference, and what of the two studies cannot be paired."""
    explainers = list(dict.fromkeys(reference.explainer or explainer for explainer, _ in rows))
    if reference.evaluation is evaluation:
        return about_failures(evaluation, explainers) if reference.explainer is not None else []
    other = reference.evaluation
    notes = [f"the other study: {note}" for note in about_failures(other, explainers)]
    left = [name for name in evaluation.study.methods if name not in other.study.methods]
    notes += [f"not in the other study: {', '.join(left)}"] if left else []
    more = set(identities(other).values()) - set(identities(evaluation).values())
    notes += [f"{counted(len(more), 'input')} of the other study left out: not in this one"] if more else []
    if None in (*evaluation.study.data.targets, *other.study.data.targets):
        notes.append("each study explains the class that its own model predicts: give `targets` to explain the same")
    return notes


def _about_inputs(evaluation: Evaluation) -> list[str]:
    """Inputs that are not independent of each other, because their content is equal."""
    listed = list(identities(evaluation).values())
    twins = len(listed) - len(set(listed))
    notes = [f"{counted(twins, 'input')} equal to others: each content counts once"] if twins else []
    again = len(set(listed)) - len({digest for digest, _ in listed})
    if again:
        notes.append(
            f"{counted(again, 'input')} with the content of others and another target: p takes them for independent"
        )
    return notes


def _about_medians(table: Table) -> list[str]:
    """Where the mean lies on the other side than the median, and what an undecided difference is not."""
    tested = [
        (f"{row}, {column}", cell, cell.verdict.mark)
        for row, line in zip(table.rows, table.cells, strict=True)
        for column, (cell,) in zip(table.columns, line, strict=True)
        if cell.verdict is not None
    ]
    notes = [
        f"{where}: the median difference is {'above' if mark > 0 else 'below'} 0 and the mean is not: a few inputs "
        "weigh much"
        for where, cell, mark in tested
        if mark * cell.mean < 0
    ]
    undecided = [cell for _, cell, mark in tested if mark == 0]
    if undecided:
        shown = not all(math.isnan(cell.half_width) for cell in undecided)
        how_large = ": the interval says how large a difference may be" if shown else ""
        notes.append(f"not shown to differ does not mean equal{how_large}")
    return notes


def _about_constant(evaluation: Evaluation, rows: list[tuple[str, Entry]], reference: Reference) -> list[str]:
    """Shares of constant maps, which are perfectly stable and worthless."""
    here = [("", evaluation, explainer, entry) for explainer, entry in rows]
    where = "" if reference.evaluation is evaluation else "the other study, "
    there = [(where, reference.evaluation, *reference.beside(explainer, entry)) for explainer, entry in rows]
    notes = {}
    for study, of, explainer, entry in [*here, *there]:
        found = [
            value
            for outer in of.study.outer_noises
            for value in figures(of, "mstd", explainer, entry, outer, "constant")
            if not isinstance(value, str)
        ]
        if found and (share := fmean(found)):
            named = f"{study}{explainer}, {entry_label(entry, Selection.of(of.study))}"
            notes[f"{named}: {percent(share, 1)} of the maps are constant: perfectly stable and worthless"] = None
    return list(notes)
