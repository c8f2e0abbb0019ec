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
from metfa.evaluation._measures import MEASURES

if TYPE_CHECKING:
    from metfa.evaluation.results import Evaluation
    from metfa.evaluation.study import Study

__all__ = [
    "VANILLA",
    "Cell",
    "Entry",
    "Figures",
    "Table",
    "faithfulness_table",
    "figures_of",
    "metrics_of",
    "only_explainer",
    "require_metric",
    "samples_table",
    "stability_table",
]


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
        lines = [[_markdown(entry) for entry in line] for line in lines]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = [
            "| " + " | ".join(entry.ljust(width) for entry, width in zip(line, widths, strict=True)) + " |"
            for line in lines
        ]
        shown.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        return f"{_one_line(self.title)}\n\n" + "\n".join(shown) + "\n"

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


def metrics_of(measure: str) -> tuple[str, ...]:
    """Metrics in the rows of a measure: its own name, unless it makes several."""
    known = MEASURES.get(measure)
    return known.makes if known is not None and known.makes else (measure,)


def stability_table(evaluation: Evaluation, metric: str, *, explainer: str | None, differences: bool) -> Table:
    """Sampling noises (and the vanilla map) against outer noises, the last column their average."""
    study = evaluation.study
    explainer = only_explainer(explainer, study)
    maps = evaluation.figures.get((metric, explainer), {})
    inputs = evaluation.inputs
    rows, cells = [], []
    for entry, values in maps.items():
        if differences and entry == VANILLA:
            continue
        if differences:
            values = _minus(values, maps.get(VANILLA, {}))
        columns = [[values.get((name, outer)) for name in inputs] for outer in study.outer_noises]
        averages = [None if None in line else fmean(line) for line in zip(*columns, strict=True)]  # pyright: ignore[reportArgumentType]
        rows.append(_label(entry, study))
        cells.append(tuple((Cell.of(column),) for column in [*columns, averages]))
    what = f"{metric}, {explainer}" + (", minus vanilla" if differences else "")
    return Table(f"{what} ({len(inputs)} inputs)", "map", (*study.outer_noises, "average"), tuple(rows), tuple(cells))


def faithfulness_table(evaluation: Evaluation, metric: str, *, differences: bool) -> Table:
    """Explainers against metrics, each cell the pair (smoothed, vanilla)."""
    study = evaluation.study
    wanted = metrics_of(metric)
    figures, inputs = evaluation.figures, evaluation.inputs
    found = [figures.get((name, explainer), {}) for name in wanted for explainer in study.methods]
    smoothed = list(dict.fromkeys(entry for maps in found for entry in maps if entry[0] == "smoothed"))
    outers = list(dict.fromkeys(outer for maps in found for values in maps.values() for _, outer in values))
    paired = bool(smoothed) and "vanilla" in study.maps
    rows, cells = [], []
    for explainer in study.methods:
        for entry in smoothed or [VANILLA]:
            for outer in outers:
                line = []
                for name in wanted:
                    maps = figures.get((name, explainer), {})
                    pair = [maps.get(entry, {}), maps.get(VANILLA, {})]
                    pair = [_minus(*pair)] if differences and paired else pair[: 1 + paired]
                    line.append(tuple(Cell.of(part.get((key, outer)) for key in inputs) for part in pair))
                label = [explainer, *([_label(entry, study)] if len(smoothed) > 1 else [])]
                rows.append(", ".join(map(str, [*label, *([outer] if len(outers) > 1 else [])])))
                cells.append(tuple(line))
    alone = "smoothed" if smoothed else "vanilla"
    what = alone if not paired else "smoothed minus vanilla" if differences else "(smoothed, vanilla)"
    title = f"{metric.replace('_', ' ')}: {what} ({len(inputs)} inputs)"
    return Table(title, "explainer", wanted, tuple(rows), tuple(cells))


def samples_table(evaluation: Evaluation, metric: str) -> Table:
    """Explainers, with N and level where there are several, against sampling noises."""
    study = evaluation.study
    rows, cells, inputs = [], [], evaluation.inputs
    for explainer in study.methods:
        maps = evaluation.figures.get((metric, explainer), {})
        for n in study.sizes:
            for level in study.levels:
                columns = [maps.get(("samples", sampling, n, level), {}) for sampling in study.noises]
                rows.append(", ".join([explainer, *_sizes(n, level, study)]))
                cells.append(tuple((Cell.of(values.get((name, None)) for name in inputs),) for values in columns))
    title = f"{metric.replace('_', ' ')} ({len(inputs)} inputs)"
    return Table(title, "explainer", tuple(f"P = {name}" for name in study.noises), tuple(rows), tuple(cells))


Entry = tuple[str, str | None, int | None, float | None]
VANILLA: Entry = ("vanilla", None, None, None)
Figures = dict[tuple[str, str | None], float | None]  # by input and outer noise


def figures_of(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, str], dict[Entry, Figures]]:
    """Scores by metric and explainer, then by map."""
    found: dict[tuple[str, str], dict[Entry, Figures]] = {}
    for row in rows:
        maps = found.setdefault((row["metric"], row["explainer"]), {})
        maps.setdefault(_entry(row), {})[row["input"], row["outer"]] = row["score"]
    return found


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


def only_explainer(name: str | None, study: Study) -> str:
    """The explainer named, or the only one."""
    names = list(study.methods)
    if name is None and len(names) > 1:
        raise ValueError(f"`explainer` must be one of {', '.join(names)}: each has figures of its own")
    if name is not None and name not in names:
        raise ValueError(f"`explainer` must be one of {', '.join(names)}, got {name!r}{did_you_mean(name, names)}")
    return names[0] if name is None else name


def require_metric(metric: str, evaluation: Evaluation) -> None:
    """Raise unless the evaluation has figures of that metric."""
    known = list(dict.fromkeys(name for name, _ in evaluation.figures))
    if metric not in known:
        raise ValueError(
            f"`metric`: nothing was measured by {metric!r}{did_you_mean(metric, known)}; there is "
            f"{', '.join(known) or 'nothing'}"
        )


def _text(pair: Sequence[Cell]) -> str:
    return str(pair[0]) if len(pair) == 1 else f"({', '.join(map(str, pair))})"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _markdown(text: str) -> str:
    return _one_line(text).replace("\\", "\\\\").replace("|", "\\|")


LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "–": "--",
    }
)


def _latex(text: str) -> str:
    return _one_line(text).translate(LATEX)
