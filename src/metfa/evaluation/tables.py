"""Tables of means over inputs, or of paired differences, with their 95% intervals, as Markdown, LaTeX or CSV."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from metfa._base.provenance import printable
from metfa._base.tables import aligned, csv_of, escaped
from metfa.stats.student import half_width

if TYPE_CHECKING:
    from metfa.evaluation.paired import Verdict

__all__ = ["Cell", "Table"]

COLUMNS = [
    *("table", "row", "column", "place", "map"),
    *("mean", "standard_error", "half_width_95", "n", "missing", "reasons"),
]  # of the CSV
OF_DIFFERENCES = ["ties", "pvalue", "adjusted_pvalue", "mark", "verdict"]


@dataclass(frozen=True)
class Cell:
    """Mean over `n` inputs with its standard error, and the number of inputs whose figure is `missing`.

    What is shown behind ± is `half_width`. With 8 inputs, ±1.96 standard errors hold the mean of a normal law in 91 %
    of the cases and of an exponential one in 86 %; by Student's t it is 95 % and 90 %.

    `reasons` holds pairs: a reason, and the number of figures missing for it. If the figures are differences, `verdict`
    says whether their median is above or below 0.
    """

    mean: float
    standard_error: float
    n: int
    missing: int
    reasons: tuple[tuple[str, int], ...] = ()
    verdict: Verdict | None = None

    @classmethod
    def of(cls, values: Iterable[float | str | None], verdict: Verdict | None = None) -> Cell:
        """The cell of these figures, one for each input; a missing figure is given as its reason."""
        values = ["no figure recorded" if value is None else value for value in values]
        known = [value for value in values if not isinstance(value, str)]
        reasons = Counter(value for value in values if isinstance(value, str))
        error = stdev(known) / math.sqrt(len(known)) if len(known) > 1 else math.nan
        mean = fmean(known) if known else math.nan
        return cls(mean, error, len(known), len(values) - len(known), tuple(reasons.items()), verdict)

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval by Student's t with n - 1 degrees of freedom; nan for one input."""
        return half_width(self.standard_error, self.n)

    def __str__(self) -> str:
        return self.text(" ± ".join)

    def text(self, joined: Callable[[list[str]], str]) -> str:
        """Mean and half width, combined by `joined`, number missing, and verdict; a dash if there is no figure."""
        if not self.n:
            return "–"
        shown = [self.mean, *([] if math.isnan(self.half_width) else [self.half_width])]
        missing = f" ({self.missing} of {self.n + self.missing} missing)" if self.missing else ""
        digits = [_digits(value, shown) for value in shown]
        if self.verdict is None:
            return joined(digits) + missing
        signed = ["+" * (self.mean > 0) + digits[0], *digits[1:]]
        return f"{joined(signed)}{missing}, {self.verdict.text}"


def _digits(value: float, beside: list[float]) -> str:
    """Four decimals, or a power of ten if the figures are too small or too large for that."""
    largest = max(map(abs, beside))
    return f"{value:.4f}" if largest == 0 or 1e-3 <= largest < 1e6 else f"{value:.2e}"


@dataclass(frozen=True)
class Table:
    """Cells by row and column; a cell may hold several maps.

    Attributes
    ----------
    title : str
        Names the figures, the number of inputs, and the settings.
    corner : str
        Names the kind of the rows.
    columns, rows : tuple of str
        Names of columns and rows.
    cells : tuple of tuples of tuples of Cell
        One tuple of cells for each row and column.
    maps : tuple of str
        The map of each cell in such a tuple, if it holds several.
    notes : tuple of str
        Reasons why figures are missing, and cautions for comparisons.
    against : str or None
        What was subtracted, if the figures are differences.
    """

    title: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[tuple[Cell, ...], ...], ...]
    maps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    against: str | None = None

    @property
    def holds_differences(self) -> bool:
        """Whether it is of differences, and at least one input has one."""
        return any(cell.verdict for line in self.cells for cells in line for cell in cells)

    def to_markdown(self) -> str:
        """For a README or a notebook; special characters in names are escaped."""
        return self._as_text(escaped)

    def __str__(self) -> str:
        return self._as_text(printable)  # people read this: no backslashes of Markdown

    def _as_text(self, name: Callable[[str], str]) -> str:
        lines = [[name(entry) for entry in (self.corner, *self.columns)]]
        lines += [[name(row), *(_side_by_side(cells, str) for cells in line)] for row, line in self._lines()]
        notes = ["", *(f"- {name(note)}" for note in self.notes)] if self.notes else []
        return "\n".join([name(self.title), "", *aligned(lines), *notes, ""])

    def to_latex(self) -> str:
        """For a paper, with booktabs."""
        lines = [[_latex(entry) for entry in (self.corner, *self.columns)]]
        lines += [[_latex(row), *(_side_by_side(cells, _latex_cell) for cells in line)] for row, line in self._lines()]
        # After \\ and \midrule, LaTeX would read a bracket or an asterisk as an argument.
        body = ["{}" * line[0].startswith(("[", "*")) + " & ".join(line) + r" \\" for line in lines]
        above = [r"\begin{table}", rf"\caption{{{_latex(self.title)}}}"]
        above += [rf"\begin{{tabular}}{{l{'c' * len(self.columns)}}}", r"\toprule", body[0], r"\midrule"]
        below = [r"\bottomrule", r"\end{tabular}", *(rf"\par{{\footnotesize {_latex(note)}}}" for note in self.notes)]
        return "\n".join([*above, *body[1:], *below, r"\end{table}", ""])

    def to_csv(self) -> str:
        """One line for each figure: row, column, map, mean, both errors, inputs, number missing and reasons.

        Differences also have the number of ties, the p-value, the corrected one, the mark (+1, -1, 0) and its words.

        A name that a spreadsheet would take for a formula, such as ``=1+1``, begins with an apostrophe.
        """
        of_differences = self.against is not None
        lines: list[list[Any]] = [[*COLUMNS, *(OF_DIFFERENCES if of_differences else [])]]
        for row, line in self._lines():
            for column, cells in zip(self.columns, line, strict=True):
                for place, cell in enumerate(cells):
                    reasons = "; ".join(f"{reason} ({count})" for reason, count in cell.reasons)
                    lines.append([
                        self.title, row, column, place, self.maps[place] if self.maps else "", cell.mean,
                        cell.standard_error, cell.half_width, cell.n, cell.missing, reasons,
                        *(_tested(cell.verdict) if of_differences else []),
                    ])  # fmt: skip
        return csv_of(lines)

    def _lines(self) -> Iterable[tuple[str, tuple[tuple[Cell, ...], ...]]]:
        return zip(self.rows, self.cells, strict=True)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def _tested(verdict: Verdict | None) -> list[Any]:
    if verdict is None:
        return [None] * len(OF_DIFFERENCES)
    return [verdict.ties, verdict.pvalue, verdict.adjusted, verdict.mark, str(verdict)]


def _side_by_side(cells: Sequence[Cell], text: Callable[[Cell], str]) -> str:
    return text(cells[0]) if len(cells) == 1 else f"({', '.join(map(text, cells))})"


LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\`{}",
        "±": r"$\pm$",
        "–": "--",
    }
)


def _latex(text: str) -> str:
    return printable(text).replace("--", "-\0-").translate(LATEX).replace("\0", "{}")


def _latex_cell(cell: Cell) -> str:
    return cell.text(lambda numbers: "$" + r" \pm ".join(map(_latex_number, numbers)) + "$").replace("–", "--")


def _latex_number(digits: str) -> str:
    mantissa, _, power = digits.partition("e")
    return rf"{mantissa} \times 10^{{{int(power)}}}" if power else mantissa
