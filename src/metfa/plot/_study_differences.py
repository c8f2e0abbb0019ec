"""The figure of paired differences of a study: each with its interval and its corrected mark."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from metfa._base.lazy import needs_extra
from metfa._base.provenance import printable
from metfa._base.validation import check_kind
from metfa.evaluation.tables import Cell, Table
from metfa.plot._canvas import new_figure
from metfa.plot._headings import LITERAL, draw_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from metfa.plot.settings import InFigure

__all__ = ["study_differences"]

SIDE_BY_SIDE = 4  # panels
LONGEST = 40  # characters of the name of a row
MARKS: dict[str, dict[str, Any]] = {  # apart in colour and in shape
    "better": {"marker": "o", "color": "#0b5394"},
    "worse": {"marker": "s", "color": "#d55e00"},
    "higher": {"marker": "^", "color": "#333333"},
    "lower": {"marker": "v", "color": "#333333"},
    "not shown to differ": {"marker": "o", "color": "#8a8a8a", "markerfacecolor": "white"},
    "too few inputs to decide": {"marker": "x", "color": "#8a8a8a"},
}


def study_differences(
    tables: Table | Sequence[Table], *, title: str | None = None, fig: InFigure | None = None
) -> InFigure:
    """Draw tables of paired differences: one panel for each measure, one line for each explainer and map.

    Points are mean differences, bars their 95 % intervals by Student's t. Colour and shape of a point show the verdict
    on the median difference, which is corrected over its whole table; see `Evaluation.table`.

    Parameters
    ----------
    tables : Table or sequence of Table
        From ``Evaluation.table(..., against=...)`` or ``Evaluation.tables(against=...)``.
    title : str, optional
        Heading; shown as plain text.
    fig : matplotlib.figure.Figure or SubFigure, optional
        An empty figure with ``layout="constrained"``, or a subfigure of one, to draw into: it is returned.

    Returns
    -------
    matplotlib.figure.Figure, or `fig`
        Not registered with pyplot: ``figure.savefig("differences.png")`` writes it.

    Raises
    ------
    TypeError, ValueError
        For something else than tables of differences, or if no table holds a difference.
    """
    with needs_extra("a figure"):
        from matplotlib.layout_engine import ConstrainedLayoutEngine

    given = [tables] if isinstance(tables, Table) else tables
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise TypeError(f"`tables` must be a Table or a sequence of them, got {type(tables).__name__}")
    for table in given:
        check_kind(table, "tables", Table, "`Evaluation.table(..., against=...)`")
        if not table.holds_differences:
            raise ValueError(
                f"`tables`: {table.title!r:.60} holds no differences: give `Evaluation.table` an `against`"
            )
    texts = [_below(table) for table in given]
    depths = [-(-len(table.columns) // SIDE_BY_SIDE) for table in given]
    heights = [
        1.2 + depth * (0.85 + 0.26 * len(table.rows)) + 0.14 * text.count("\n")
        for table, depth, text in zip(given, depths, texts, strict=True)
    ]
    size = 11, sum(heights) + 0.6 + 0.4 * (title is not None)
    canvas = new_figure(size, ConstrainedLayoutEngine(wspace=0.05), fig)
    parts = canvas.subfigures(len(given), 1, height_ratios=heights, squeeze=False)
    shown: set[str] = set()
    for part, table, text, depth in zip(parts[:, 0], given, texts, depths, strict=True):
        across = min(SIDE_BY_SIDE, len(table.columns))
        panels = part.subplots(depth, across, squeeze=False, sharey=True).ravel()
        for place, panel in enumerate(panels):
            if place < len(table.columns):
                cells = [line[place][0] for line in table.cells]
                shown |= _draw(panel, cells, table.columns[place])
            else:
                panel.set_visible(False)
        for panel in panels[::across]:
            names = [_row(name) for name in table.rows]
            panel.set_yticks(range(len(names)), labels=names, fontsize="small", **LITERAL)
        part.suptitle(_heading(table), x=0.01, ha="left", fontsize="medium", fontweight="bold", **LITERAL)
        part.supxlabel(text, x=0.01, ha="left", fontsize="x-small", **LITERAL)
    _legend(canvas, shown)
    draw_heading(canvas, title)
    return canvas


def _draw(ax: Axes, cells: Sequence[Cell], name: str) -> set[str]:
    """Draw one measure from the top downwards; returns the names of the marks that it shows."""
    shown = set()
    for place, cell in enumerate(cells):
        if cell.verdict is None:
            ax.text(0, place, "none", fontsize="x-small", ha="center", va="center", color="#8a8a8a")
            continue
        mark = "too few inputs to decide" if cell.verdict.needed is not None else str(cell.verdict)
        shown.add(mark)
        width = None if cell.n == 1 else cell.half_width
        ax.errorbar(
            cell.mean, place, xerr=width, linestyle="", capsize=2.5, elinewidth=1.2, markersize=6, **MARKS[mark]
        )
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    ax.set_axisbelow(True)
    ax.set_ylim(len(cells) - 0.4, -0.6)
    ax.set_title(printable(name), fontsize="medium", **LITERAL)
    better = next((cell.verdict.better for cell in cells if cell.verdict is not None), None)
    ax.set_xlabel({"higher": "higher is better →", "lower": "← lower is better", None: ""}[better], fontsize="small")
    ax.tick_params(axis="x", labelsize="small")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.locator_params(axis="x", nbins=5)
    return shown


def _row(name: str) -> str:
    return "\n".join(textwrap.wrap(printable(name), LONGEST, max_lines=2, placeholder=" …"))


def _heading(table: Table) -> str:
    """The beginning of a title: what was measured, and what was subtracted."""
    return textwrap.shorten(printable(re.split(r" \(\d+ inputs?\)", table.title)[0]), 100, placeholder=" …")


def _below(table: Table) -> str:
    """The title of a table, which says how it was made, and its notes."""
    return "\n".join(textwrap.fill(printable(line), 200) for line in (table.title, *table.notes))


def _legend(fig: Figure, shown: set[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], linestyle="", label=name, **MARKS[name]) for name in MARKS if name in shown]
    fig.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize="small")
