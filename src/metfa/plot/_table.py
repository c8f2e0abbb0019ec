"""Rows against columns: what is decided about each feature of each input, a cell for each, in one picture."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE, palette_named
from metfa._base.percents import counted, percent
from metfa._base.validation import as_list, check_kind, positive_int
from metfa.plot._bars import label_of
from metfa.plot._canvas import new_figure
from metfa.plot._headings import LITERAL, draw_heading, draw_legend
from metfa.plot.cells import Cells, lines_below, name_of_row, rows_in_words
from metfa.plot.images import FAINT
from metfa.results.cautions import FLIPS_FROM
from metfa.results.decisions import TooFewSamplesError
from metfa.results.population import check_copies
from metfa.results.sample import AttributionSample

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from metfa.plot.settings import InFigure

__all__ = ["table"]

COLUMN, ROW, TALL = 0.3, 0.21, 8.0  # inches: of a column, of a row with a name, and of many rows without
NAMED = 50  # rows that have names and signs in their cells
MOST_ROWS = 1_000  # as many as there are lines of dots; of more, some are shown
PALEST = 0.25  # weight of the colour of a decided cell whose score lies at the threshold
GAP = 0.03  # of all rows: the least place for a name of a group
HATCH, HATCHED = "////", "#c4c4cc"
SIGNS = {1: "+", -1: "\N{MINUS SIGN}"}


def table(
    sample: AttributionSample,
    *,
    rows: Sequence[int] | None = None,
    title: str | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
    confidence_level: float = 0.95,
    max_features: int = 30,
    palette: str = DEFAULT_PALETTE,
    flips_from: float = FLIPS_FROM,
    fig: InFigure | None = None,
) -> InFigure:
    """Draw the rows of a data set against its columns: which features are decided in which rows, and how strongly.

    A cell has the colour of its mark, the stronger the further its smoothed score lies from the threshold of its row.
    What is undecided is hatched and has no colour. Above stands the share of the rows with each mark. Columns with the
    largest decided scores over all rows come first. Rows of one explained class stand together, and in it those whose
    strongest decided feature is the same, from the highest score to the lowest. Rows in which nothing is decided come
    last.

    Parameters
    ----------
    sample : AttributionSample
        Of several inputs, with features along one axis, such as the rows of a table.
    rows : sequence of int, optional
        Which inputs to draw, in this order from the top. By default all, grouped as above; of more than 1,000 some,
        evenly chosen from this order, and the figure says so.
    title : str, optional
        Heading; shown as plain text.
    threshold, alpha, correction, split
        As for `AttributionSample.terms`. A correction is for the features of each row, as everywhere.
    confidence_level : float
        Level of the interval by which scores are smoothed.
    max_features : int
        How many columns are shown at most; the figure says how many are left out. A correction counts all.
    palette : {"colourblind", "paper"}
        Colours of the marks.
    flips_from : float
        Share of noisy inputs with another prediction, from which on a row is faint, and counted in the title.
    fig : matplotlib.figure.Figure or SubFigure, optional
        An empty figure with ``layout="constrained"``, or a subfigure of one, to draw into: it is returned.

    Returns
    -------
    matplotlib.figure.Figure, or `fig`
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it.

    Raises
    ------
    ValueError
        If the features lie along several axes, or an argument is out of range. Too few samples are no error: the
        figure says so.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> rows = np.random.default_rng(0).normal(size=(60, 3))
    >>> sample = metfa.explain(lambda x, target: x * np.array([3.0, 1.0, 0.0]), rows, 0,
    ...                        noise=metfa.noise.Gaussian(0.3), n_samples=20, rng=0)
    >>> figure = metfa.plot.table(sample)
    """
    with needs_extra("a figure"):
        import matplotlib.figure  # noqa: F401

    check_kind(sample, "sample", AttributionSample, "`metfa.explain`")
    if len(sample.feature_shape) != 1:
        raise ValueError(
            f"`sample` must have features along one axis for a table, got shape {sample.feature_shape}: pool them, "
            "`sample.over(regions)`, or draw each input by `sample.plot(index=...)`"
        )
    check_copies(sample.population, "a table of rows needs")
    if isinstance(sample.inputs, list) and sample.regions is None:
        raise ValueError(
            "`sample` must have features that mean the same in every row, and words of texts stand at places: pool "
            "them first, with regions of the same names for each text, `sample.over(regions)`"
        )
    colours = palette_named(palette)
    max_features = positive_int(max_features, "max_features")
    chosen = None if rows is None else _checked_rows(rows, len(sample.target))
    terms = sample.terms(threshold, alpha=alpha, correction=correction, split=split)
    try:
        decision = sample.decide(terms)
    except TooFewSamplesError as error:
        canvas = new_figure((7.5, 2.0), "constrained", fig)
        ax = canvas.subplots()
        ax.set_axis_off()
        ax.text(0.5, 0.5, textwrap.fill(f"no marks: {error}", 70), ha="center", va="center", **LITERAL)
        draw_heading(canvas, title)
        return canvas
    cells = Cells.of(sample, decision, confidence_level, flips_from)
    features, rest = np.split(cells.columns, [max_features])
    order = cells.grouped if chosen is None else chosen
    drawn = order if len(order) <= MOST_ROWS else order[np.linspace(0, len(order) - 1, MOST_ROWS).astype(np.int64)]
    names = [label_of(sample.feature_names, feature, 28) for feature in range(sample.n_features)]
    said = lines_below(sample, decision, cells, rest)
    if len(drawn) < len(order):
        said.append(f"{len(drawn):,} of {len(order):,} rows are drawn, evenly chosen from this order; all are counted")
    longest = max(len(line) for feature in features for line in names[feature].splitlines())
    side = max(COLUMN * len(features), 3.2)
    tall = ROW * len(drawn) if len(drawn) <= NAMED else TALL
    width = max(side + 2.8, 8.0)
    canvas = new_figure((width, tall + 0.085 * longest + 2.6 + 0.2 * len(said)), "constrained", fig)
    shares, ax = canvas.subplots(2, 1, sharex=True, height_ratios=(0.6, max(tall, 0.6)))
    marks = colours.of_marks(decision.kinds)
    handles = _draw_shares(shares, decision.marks[np.ix_(order, features)], marks)
    _draw_cells(ax, cells, drawn, features, marks)
    shares.set_xticks(np.arange(len(features)), labels=[names[feature] for feature in features], rotation=90)
    if len(drawn) <= NAMED:
        ax.set_yticks(
            np.arange(len(drawn)),
            labels=[textwrap.shorten(name_of_row(sample, row), 28, placeholder=" …") for row in drawn],
            fontsize="small",
        )
    elif chosen is None:
        none = f"no {sample.noun} decided"
        _name_groups(ax, [names[lead] if lead >= 0 else none for lead in cells.lead[drawn]], by="left")
    if len({cells.classes[row] for row in drawn}) > 1 and chosen is None:
        _name_groups(ax, [cells.classes[row] for row in drawn], by="right")
    across = int(13 * width)
    draw_legend(canvas, handles, said, room=across, width=across)
    warned = int(cells.warned[order].sum())
    share = f"{percent(flips_from, 0)} or more of the noisy copies"
    caution = f"The noise changed the prediction in {share} of {counted(warned, 'row')}, drawn faintly"
    draw_heading(canvas, title, about=rows_in_words(order, cells), cautions=[caution] * bool(warned))
    return canvas


def _checked_rows(rows: Any, batch: int) -> np.ndarray:
    entries = as_list(rows, "rows", "a list of inputs, such as [0, 3]")
    found = [positive_int(entry, "rows", minimum=0) for entry in entries]
    if not found or max(found) >= batch:
        raise ValueError(f"`rows` must name inputs in 0..{batch - 1}, got {max(found, default='none')}")
    return np.array(found)


def _draw_shares(ax: Axes, marks: np.ndarray, kinds: list[tuple[str, int, str]]) -> list[Any]:
    """Draw the share of the rows with each mark above each column; returns the entries of the legend."""
    from matplotlib.patches import Patch

    handles, below = [], np.zeros(marks.shape[1])
    for name, mark, colour in (kinds[0], kinds[2], kinds[1]):  # what is undecided on top
        share = (marks == mark).mean(axis=0)
        look: dict[str, Any] = (
            {"color": colour} if mark else {"facecolor": "white", "hatch": HATCH, "edgecolor": HATCHED}
        )
        ax.bar(np.arange(marks.shape[1]), share, bottom=below, width=0.9, linewidth=0, **look)
        handles.append(Patch(label=f"{name}: {percent((marks == mark).mean(), 1)} of these cells", linewidth=0, **look))
        below += share
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 1], labels=["0%", "100%"], fontsize="x-small")
    ax.set_ylabel("rows", fontsize="small")
    ax.tick_params(which="both", length=0, labeltop=True, labelbottom=False, labelsize="small")
    ax.spines[:].set_visible(False)
    return handles


def _draw_cells(
    ax: Axes, cells: Cells, rows: np.ndarray, features: np.ndarray, kinds: list[tuple[str, int, str]]
) -> None:
    """Draw the colours of decided cells over hatching, with the signs of marks where there is room."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    marks, apart = cells.marks[np.ix_(rows, features)], cells.apart[np.ix_(rows, features)]
    weight = PALEST + (1 - PALEST) * np.minimum(1, np.abs(apart) / cells.top)
    weight[cells.warned[rows]] *= FAINT
    painted = np.zeros((*marks.shape, 4))
    for _, mark, colour in kinds:
        if mark:
            mine = marks == mark
            painted[mine, :3] = 1 - weight[mine, None] * (1 - np.array(to_rgb(colour)))
            painted[mine, 3] = 1
    n_rows, n_columns = marks.shape
    whole: dict[str, Any] = {"facecolor": "white", "edgecolor": HATCHED, "hatch": HATCH, "linewidth": 0, "zorder": 0}
    ax.add_patch(Rectangle((-0.5, -0.5), n_columns, n_rows, **whole))
    ax.imshow(painted, interpolation="nearest", aspect="auto", zorder=1)
    if n_rows <= NAMED:
        for row, column in zip(*np.nonzero(marks), strict=True):
            strong = marks[row, column] < 0 and weight[row, column] > 0.5
            style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small"}
            ax.text(column, row, SIGNS[int(marks[row, column])], color="white" if strong else "black", **style)
        ax.set_yticks(np.arange(n_rows + 1) - 0.5, minor=True)
        ax.grid(which="minor", axis="y", color="white", linewidth=1)
    ax.set_xticks(np.arange(n_columns + 1) - 0.5, minor=True)
    ax.grid(which="minor", axis="x", color="white", linewidth=1)
    ax.tick_params(which="both", length=0, labeltop=False, labelbottom=False)
    ax.spines[:].set_visible(False)


def _name_groups(ax: Axes, of_rows: list[str], by: str) -> None:
    """Write the names of neighbouring rows beside their middle, where there is room, and lines between the groups."""
    ends = [row for row in range(1, len(of_rows)) if of_rows[row] != of_rows[row - 1]]
    groups = [(start, stop) for start, stop in zip([0, *ends], [*ends, len(of_rows)], strict=True)]
    wide = [(start, stop) for start, stop in groups if stop - start >= GAP * len(of_rows)]
    axis = ax if by == "left" else ax.secondary_yaxis("right")
    places = [(start + stop - 1) / 2 for start, stop in wide]
    labels = [f"{of_rows[start]}\n{counted(stop - start, 'row')}" for start, stop in wide]
    axis.set_yticks(places, labels=labels, fontsize="x-small")
    axis.tick_params(axis="y", length=0)
    axis.spines[:].set_visible(False)
    for end in ends if by == "right" else ():
        ax.axhline(end - 0.5, color="black", linewidth=1.2)
