"""Tables of means over inputs with their standard errors, as Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from metfa._validation import did_you_mean

if TYPE_CHECKING:
    from metfa.evaluation.results import Evaluation

__all__ = ["PAIRS", "Cell", "Table", "faithfulness_table", "samples_table", "stability_table"]

PAIRS = {"faithfulness": ("insertion", "deletion", "overall"), "robust_faithfulness": ("RI", "RD", "RO")}


@dataclass(frozen=True)
class Cell:
    """Mean over inputs, its standard error, how many inputs it is of, and how many have no figure."""

    mean: float
    standard_error: float
    n: int
    missing: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Cell:
        """Of one figure an input, None where there is none."""
        values = list(values)
        known = [value for value in values if value is not None]
        error = stdev(known) / math.sqrt(len(known)) if len(known) > 1 else math.nan
        return cls(fmean(known) if known else math.nan, error, len(known), len(values) - len(known))

    def __str__(self) -> str:
        if not self.n:
            return "–"
        error = "" if math.isnan(self.standard_error) else f" ± {self.standard_error:.4f}"
        return f"{self.mean:.4f}{error}" + (
            f" ({self.missing} of {self.n + self.missing} missing)" if self.missing else ""
        )


@dataclass(frozen=True)
class Table:
    """Cells by row and column; a cell may be a pair.

    Attributes
    ----------
    title : str
        What the figures are.
    corner : str
        What the rows are.
    columns, rows : tuple of str
        Their names.
    cells : tuple of tuples of tuples of Cell
        One tuple of cells for each row and column.
    """

    title: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[tuple[Cell, ...], ...], ...]

    def to_markdown(self) -> str:
        """For a README or a notebook."""
        lines = [[self.corner, *self.columns], *([row, *map(_text, cells)] for row, cells in self._lines())]
        lines = [[entry.replace("|", "\\|") for entry in line] for line in lines]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = [
            "| " + " | ".join(entry.ljust(width) for entry, width in zip(line, widths, strict=True)) + " |"
            for line in lines
        ]
        shown.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        return f"{self.title}\n\n" + "\n".join(shown) + "\n"

    def to_latex(self) -> str:
        """For a paper, with booktabs."""
        lines = [[self.corner, *self.columns], *([row, *map(_text, cells)] for row, cells in self._lines())]
        body = [" & ".join(map(_latex, line)) + r" \\" for line in lines]
        above = [r"\begin{table}", rf"\caption{{{_latex(self.title)}}}"]
        above += [rf"\begin{{tabular}}{{l{'c' * len(self.columns)}}}", r"\toprule", body[0], r"\midrule"]
        below = [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
        return "\n".join([*above, *body[1:], *below])

    def to_csv(self) -> str:
        """One line for each figure: row, column, place in the pair, mean, standard error, inputs, missing ones."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(["row", "column", "place", "mean", "standard_error", "n", "missing"])
        for row, cells in self._lines():
            for column, pair in zip(self.columns, cells, strict=True):
                for place, cell in enumerate(pair):
                    writer.writerow(
                        [row, column, place, repr(cell.mean), repr(cell.standard_error), cell.n, cell.missing]
                    )
        return buffer.getvalue()

    def _lines(self) -> Iterable[tuple[str, tuple[tuple[Cell, ...], ...]]]:
        return zip(self.rows, self.cells, strict=True)

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def stability_table(evaluation: Evaluation, metric: str, *, explainer: str | None, differences: bool) -> Table:
    """Sampling noises (and the vanilla map) against outer noises, the last column their average."""
    study = evaluation.study
    _require(metric, evaluation)
    names = list(study.methods)
    if explainer is None and len(names) > 1:
        raise ValueError(f"`explainer` must be one of {', '.join(names)}: each has a table of its own")
    if explainer is not None and explainer not in names:
        raise ValueError(
            f"`explainer` must be one of {', '.join(names)}, got {explainer!r}{did_you_mean(explainer, names)}"
        )
    chosen = _Chosen(evaluation, metric, explainer or names[0])
    maps = chosen.maps()
    vanilla = chosen.values(("vanilla", None, None, None)) if differences else {}
    rows, cells = [], []
    for entry in maps:
        if differences and entry[0] == "vanilla":
            continue
        values = chosen.values(entry)
        if differences:
            values = _minus(values, vanilla)
        columns = [[values.get((name, outer)) for name in chosen.inputs] for outer in study.outer_noises]
        averages = [None if None in line else fmean(line) for line in zip(*columns, strict=True)]  # pyright: ignore[reportArgumentType]
        rows.append(_label(entry, study))
        cells.append(tuple((Cell.of(column),) for column in [*columns, averages]))
    what = f"{metric}, {explainer or names[0]}" + (", minus vanilla" if differences else "")
    return Table(
        f"{what} ({len(chosen.inputs)} inputs)", "map", (*study.outer_noises, "average"), tuple(rows), tuple(cells)
    )


def faithfulness_table(evaluation: Evaluation, metric: str, *, differences: bool) -> Table:
    """Explainers against metrics, each cell the pair (smoothed, vanilla)."""
    study = evaluation.study
    wanted = PAIRS.get(metric, (metric,))
    for name in wanted:
        _require(name, evaluation)
    first = _Chosen(evaluation, wanted[0], next(iter(study.methods)))
    smoothed = [entry for entry in first.maps() if entry[0] == "smoothed"]
    several = len(smoothed) > 1
    outers = list(dict.fromkeys(row["outer"] for row in evaluation.rows if row["metric"] in wanted))
    rows, cells = [], []
    for explainer in study.methods:
        for entry in smoothed or [("vanilla", None, None, None)]:
            for outer in outers:
                line = []
                for name in wanted:
                    chosen = _Chosen(evaluation, name, explainer)
                    pair = [chosen.values(entry), chosen.values(("vanilla", None, None, None))]
                    pair = [_minus(*pair)] if differences and smoothed else pair[: 2 if smoothed else 1]
                    line.append(tuple(Cell.of([part.get((key, outer)) for key in chosen.inputs]) for part in pair))
                label = [explainer, *([_label(entry, study)] if several else []), *([outer] if len(outers) > 1 else [])]
                rows.append(", ".join(map(str, label)))
                cells.append(tuple(line))
    what = "smoothed minus vanilla" if differences and smoothed else "(smoothed, vanilla)" if smoothed else "vanilla"
    title = f"{metric.replace('_', ' ')}: {what} ({len(first.inputs)} inputs)"
    return Table(title, "explainer", wanted, tuple(rows), tuple(cells))


def samples_table(evaluation: Evaluation, metric: str) -> Table:
    """Explainers, with N and level where there are several, against sampling noises."""
    study = evaluation.study
    _require(metric, evaluation)
    rows, cells, inputs = [], [], []
    for explainer in study.methods:
        chosen = _Chosen(evaluation, metric, explainer)
        inputs = inputs or chosen.inputs
        for n in study.sizes:
            for level in study.levels:
                entries = [("samples", sampling, n, level) for sampling in study.noises]
                label = [explainer, *_sizes(n, level, study)]
                rows.append(", ".join(label))
                cells.append(
                    tuple(
                        (Cell.of([chosen.values(entry).get((name, None)) for name in chosen.inputs]),)
                        for entry in entries
                    )
                )
    title = f"{metric.replace('_', ' ')} ({len(inputs)} inputs)"
    return Table(title, "explainer", tuple(f"P = {name}" for name in study.noises), tuple(rows), tuple(cells))


Entry = tuple[str, str | None, int | None, float | None]


@dataclass(frozen=True)
class _Chosen:
    """Rows of one metric and one explainer."""

    evaluation: Evaluation
    metric: str
    explainer: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [
            row for row in self.evaluation.rows if row["metric"] == self.metric and row["explainer"] == self.explainer
        ]

    @property
    def inputs(self) -> list[str]:
        return list(dict.fromkeys(row["input"] for row in self.rows))

    def maps(self) -> list[Entry]:
        return list(dict.fromkeys(map(_entry, self.rows)))

    def values(self, entry: Entry) -> dict[tuple[str, str | None], float | None]:
        return {(row["input"], row["outer"]): row["score"] for row in self.rows if _entry(row) == entry}


def _entry(row: dict[str, Any]) -> Entry:
    return row["aggregate"], row["sampling"], row["n_samples"], row["confidence_level"]


def _minus(a: dict[Any, float | None], b: dict[Any, float | None]) -> dict[Any, float | None]:
    return {key: None if value is None or b.get(key) is None else value - b[key] for key, value in a.items()}  # pyright: ignore[reportOperatorIssue]


def _label(entry: Entry, study: Any) -> str:
    aggregate, sampling, n, level = entry
    if sampling is None:
        return aggregate
    return ", ".join([aggregate, f"P = {sampling}", *_sizes(n, level, study)])


def _sizes(n: int | None, level: float | None, study: Any) -> list[str]:
    """Sample size and level, where the study has several."""
    shown = [f"N = {n}"] if len(study.sizes) > 1 else []
    return [*shown, f"level {level:g}"] if len(study.levels) > 1 and level is not None else shown


def _require(metric: str, evaluation: Evaluation) -> None:
    known = list(dict.fromkeys(row["metric"] for row in evaluation.rows))
    if metric not in known:
        raise ValueError(
            f"`metric`: nothing was measured by {metric!r}{did_you_mean(metric, known)}; there is "
            f"{', '.join(known) or 'nothing'}"
        )


def _text(pair: Sequence[Cell]) -> str:
    return str(pair[0]) if len(pair) == 1 else f"({', '.join(map(str, pair))})"


def _latex(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, f"\\{character}")
    return text.replace("±", r"$\pm$").replace("~", r"\textasciitilde{}").replace("^", r"\textasciicircum{}")
