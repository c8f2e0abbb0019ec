"""The layouts of the paper's tables: stability, faithfulness, and metrics of the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from statistics import fmean
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from metfa import stats
from metfa._base.percents import percent
from metfa.evaluation._figures import BESIDE_MSTD
from metfa.evaluation._measures import GOVERNED, Measure
from metfa.evaluation._of_samples import correction_of
from metfa.evaluation.notes import about_failures, about_levels, about_missing, about_trimming, counted_inputs
from metfa.evaluation.over import over_in_words, subtracts
from metfa.evaluation.selection import VANILLA, Entry, Selection, entry_label, figures, only_explainer
from metfa.evaluation.tables import Cell, Table
from metfa.results.rules import RULES, USUAL, break_in_words

if TYPE_CHECKING:
    from metfa.evaluation.results import Evaluation
    from metfa.evaluation.study import Study

__all__ = [
    "average",
    "beside",
    "described",
    "faithfulness_table",
    "samples_shown",
    "samples_table",
    "stability_table",
    "terms_shown",
]


def average(columns: list[list[float | str]], *, of_known: bool = False) -> list[float | str]:
    """Mean over the outer noises, input by input; `of_known`: over those that have a figure, else over all of them."""
    averages: list[float | str] = []
    for line in zip(*columns, strict=True):
        known = [value for value in line if not isinstance(value, str)]
        reasons = [value for value in line if isinstance(value, str)]
        averages.append(fmean(known) if known and (of_known or not reasons) else reasons[0])
    return averages


def stability_table(evaluation: Evaluation, measure: Measure, explainer: str | None, selection: Selection) -> Table:
    """Maps against outer noises, then their average; for mstd also what `metrics.Stability` has beside it.

    mstd is in the units of the maps: a map near zero varies little, and a constant map does not vary at all.
    """
    study, metric = evaluation.study, measure.name
    explainer = only_explainer(explainer, study)
    made = ("vanilla",) if measure.of == "predictions" else study.maps
    entries = selection.entries(made)
    outers = list(study.outer_noises)

    def columns(entry: Entry, column: str = "score") -> list[list[float | str]]:
        return [figures(evaluation, metric, explainer, entry, outer, column) for outer in outers]

    lines = {entry: columns(entry) for entry in entries}
    lines = {entry: [*line, average(line)] for entry, line in lines.items()}
    names = [*outers, "average"]
    for column in BESIDE_MSTD if metric == "mstd" else ():
        found = [figures(evaluation, metric, explainer, entry, outer, column) for entry in entries for outer in outers]
        if column == "level" or any(value for values in found for value in values if not isinstance(value, str)):
            names.append(column.replace("_", " "))
            for entry, line in lines.items():
                line.append(average(columns(entry, column), of_known=True))
    rows = tuple(entry_label(entry, selection) for entry in lines)
    cells = tuple(tuple((Cell.of(column),) for column in line) for line in lines.values())
    what = f"{metric}, {explainer}"
    details = [*samples_shown(list(lines), selection), f"{study.n_outer} draws of each outer noise"]
    table = Table(what, "map", tuple(names), rows, cells)
    return described(table, evaluation, measure, details, [explainer] * len(rows), list(lines))


def faithfulness_table(evaluation: Evaluation, metric: str, measure: Measure, selection: Selection) -> Table:
    """Explainers against metrics; each cell has the pair of the paper (smoothed, vanilla), then the mean map."""
    study = evaluation.study
    wanted = measure.makes if measure.makes and metric == measure.name else (metric,)
    noisy = [name for name, noise in study.outer_noises.items() if noise is not None]
    outers: list[str | None] = [*noisy] if measure.of == "maps under noise" else [None]
    maps = tuple(name for name in ("smoothed", "vanilla", "mean") if name in study.maps)
    made = next(name for name in ("smoothed", "mean", "vanilla") if name in maps)
    of_samples = [entry for entry in selection.entries(study.maps) if entry[0] == made]
    rows, cells, explainers = [], [], []
    for explainer in selection.explainers:
        for entry in of_samples:
            pair: list[Entry] = [beside(entry, name) for name in maps]
            for outer in outers:
                line = []
                for name in wanted:
                    found = [figures(evaluation, name, explainer, one, outer) for one in pair]
                    line.append(tuple(map(Cell.of, found)))
                label = [explainer, *selection.label(*entry[1:])]
                rows.append(", ".join([*label, *([f"O = {outer}"] if len(outers) > 1 else [])]))
                cells.append(tuple(line))
                explainers.append(explainer)
    shown = maps[0] if len(maps) == 1 else f"({', '.join(maps)})"
    what = f"{metric.replace('_', ' ')}: {shown}"
    entries = [beside(entry, name) for name in maps for entry in of_samples]
    details = samples_shown(entries, selection, noise=True)
    if measure.of == "maps under noise":
        single = f"O = {outers[0]}" if len(outers) == 1 else "each outer noise"
        details.append(f"{study.n_outer} draws of {single}")
    table = Table(what, "explainer", wanted, tuple(rows), tuple(cells), maps if len(maps) > 1 else ())
    return described(table, evaluation, measure, details, explainers, entries)


def samples_table(evaluation: Evaluation, measure: Measure, selection: Selection) -> Table:
    """Explainers against sampling noises, with N and level if there are several."""
    rows, cells, entries, explainers = [], [], [], []
    for explainer in selection.explainers:
        for n in selection.sizes:
            for level in selection.levels if measure.by_level else (None,):
                line: list[Entry] = [("samples", noise, n, level) for noise in selection.noises]
                rows.append(", ".join([explainer, *selection.label(None, n, level)]))
                cells.append(tuple((Cell.of(figures(evaluation, measure.name, explainer, entry, None)),)
                                   for entry in line))  # fmt: skip
                entries += line
                explainers.append(explainer)
    columns = tuple(f"P = {name}" for name in selection.noises)
    table = Table(measure.name.replace("_", " "), "explainer", columns, tuple(rows), tuple(cells))
    details = samples_shown(entries, selection)
    details += terms_shown(measure, evaluation.study) if measure.decides else []
    return described(table, evaluation, measure, details, explainers, entries)


def beside(entry: Entry, name: str) -> Entry:
    """Another map of the same samples."""
    _, noise, n, level = entry
    return VANILLA if name == "vanilla" else (name, noise, n, level if name == "smoothed" else None)


def described(
    table: Table, evaluation: Evaluation, measure: Measure, details: list[str], explainers: Sequence[str],
    entries: Sequence[Entry], *, closing: Sequence[str] = (),
) -> Table:  # fmt: skip
    """The table, with its settings in the title and with its notes; `explainers` has one name for each row.

    `closing` ends the title; the notes come before those that the table has already.
    """
    model = evaluation.study.model
    model = model if isinstance(model, str) else getattr(model, "name", None)
    details = [*details, *([] if evaluation.study.parts is None else [over_in_words(evaluation.study.parts)])]
    details = [*details, *_settings(measure), *([f"model {model}"] if isinstance(model, str) else [])]
    error = ["±: 95% interval by Student's t"] if len(evaluation.inputs) > 1 else []
    title = ", ".join([f"{table.title} ({counted_inputs(evaluation)})", *details, *error, *closing])
    beside = measure.name == "mstd" and table.against is None  # these lack the same figures
    beside_mstd = [name.replace("_", " ") for name in BESIDE_MSTD] if beside else []
    scores = [column for column in table.columns if column not in beside_mstd]
    notes = [*about_missing(table, explainers, scores), *about_failures(evaluation, list(dict.fromkeys(explainers)))]
    notes += [*table.notes, *about_trimming(entries, evaluation.study.rule)]
    notes += about_levels(evaluation) if measure.name == "mstd" else []
    return replace(table, title=title, notes=tuple(notes))


def samples_shown(entries: Sequence[Entry], selection: Selection, *, noise: bool = False) -> list[str]:
    """Noise, N and level of the maps shown, each only if it is the same for all; others stand in the rows."""
    sampled = [entry for entry in entries if entry[1] is not None]
    levels = {entry[3] for entry in sampled if entry[3] is not None}
    shown = [f"P = {selection.noises[0]}"] if noise and sampled and len(selection.noises) == 1 else []
    if not sampled or len(selection.sizes) != 1:
        return [*shown, *(map(percent, levels) if len(levels) == 1 else [])]
    (n,) = selection.sizes
    shown.append(selection.size_label(n))
    if len(levels) != 1:
        return shown
    (level,) = levels
    if n is None:
        return [*shown, percent(level)]
    return [*shown, f"{percent(level)} ({percent(stats.median_ranks(n, level).confidence_level, 1)} reached)"]


TECHNICAL = {"batch_size", "softmax", "fast", "memory_format", "others"}
TERMS = {"threshold", "correction", "split"}  # of tests; a title shows them in words of their own


def _settings(measure: Measure) -> list[str]:
    """The settings on which its figures depend, as the study sets them or by default."""
    parameters = signature(measure.takes).parameters if measure.takes else {}
    default = {
        name: parameter.default for name, parameter in parameters.items() if parameter.default is not parameter.empty
    }
    if measure.of in ("maps under noise", "outer samples", "predictions"):
        default.pop("n_outer", None)  # the study names it
    hidden = TECHNICAL | GOVERNED | TERMS
    found = {name: value for name, value in {**default, **measure.settings}.items() if name not in hidden}
    return [f"{name} {_shown(value)}" for name, value in found.items()]


def terms_shown(measure: Measure, study: Study) -> list[str]:
    """Threshold, correction and split of a measure that decides."""
    rule, threshold, split = study.rule, measure.settings.get("threshold"), measure.settings.get("split")
    if threshold is None and rule is not None and rule.undecided is not None:
        threshold = rule.threshold
    if threshold is not None:
        named = break_in_words(threshold) or _shown(threshold)
    elif subtracts(study.parts):
        named = "0"
    else:
        usual = break_in_words(RULES[USUAL])
        named = usual if split else f"0 of signed scores, {usual} of others"
    of_first = f" of the first {split} samples" if split else ""
    correction = correction_of(measure.settings, rule)
    return [f"threshold {named}{of_first}", f"{correction} correction of each side" if correction else "no correction"]


def _shown(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"of shape {tuple(value.shape)}"
    name = getattr(value, "__name__", None) or str(value)
    return shorten(type(value).__name__ if " at 0x" in name else name, 60, placeholder="...")  # no place in memory
