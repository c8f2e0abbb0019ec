"""Every sample as a point: the scores of each feature over the rows of a data set, coloured by the feature's value."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE, Palette, palette_named
from metfa._base.percents import counted
from metfa._base.validation import check_kind, positive_int
from metfa.plot._bars import ROOM, found, label_of, not_shown, score_name
from metfa.plot._canvas import new_axes, room_of
from metfa.plot._headings import LITERAL, draw_heading, draw_legend
from metfa.results.cautions import FLIPS_FROM, cautions, line_of_row, nothing_stands_out
from metfa.results.decisions import Decision
from metfa.results.labels import ordered_codes
from metfa.results.sample import AttributionSample
from metfa.results.scores import Scores
from metfa.sampling.request import checked_names, fitting_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from metfa.plot.settings import OnAxes

__all__ = ["beeswarm"]

MOST_POINTS = 5_000  # in one figure; more hide each other and make large files
ROW_HEIGHT = 0.42  # inches
BINS = 120  # along the axis; points in one lie beside each other
HALF = 0.36  # of a feature's row that the densest bin takes, up and down
FEW, ASIDE = 40, 0.26  # points that would hide behind their interval, which then lies below them
PLAIN, MISSING, COLOUR_MAP = "#5b7fb5", "#9a9a9a", "viridis"
CLIPPED = 5  # percent of the values at either end that share the colour of the end


def beeswarm(
    sample: AttributionSample,
    *,
    values: Any = None,
    index: int = 0,
    feature_names: Sequence[str] | None = None,
    title: str | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    confidence_level: float = 0.95,
    max_features: int = 20,
    palette: str = DEFAULT_PALETTE,
    ax: OnAxes | None = None,
) -> OnAxes:
    """Draw each row's score as a point, with the exact interval of the median over the rows.

    Features whose absolute scores have the largest medians over the rows come first. The square beside a name has the
    colour of what is decided. Points lie beside each other where they are many, always in the same way. In a figure
    with more than 5,000 points rows are left out by chance, always the same ones, and the figure says so; intervals and
    decisions are of all rows.

    Parameters
    ----------
    sample : AttributionSample
        Such as ``sample.across_inputs(absolute=False)``, whose points are rows. The points of other results are the
        samples of one input, or models.
    values : array, optional
        Numbers that colour the points, (samples, features), such as the columns of the table; those of the lowest and
        the highest 5 % share a colour. By default the inputs, where `across_inputs` kept such a table. Not finite
        numbers are grey.
    index : int
        Which input of the batch.
    feature_names : sequence of str, optional
        By default those of the sample.
    title : str, optional
        Heading; shown as plain text.
    threshold, alpha, correction
        As for `AttributionSample.terms`.
    confidence_level : float
        Level of each interval; the legend names the exact level reached.
    max_features : int
        How many features are shown at most; the figure says how many are left out.
    palette : {"colourblind", "paper"}
        Colours of the marks.
    ax : matplotlib.axes.Axes, optional
        Empty axes to draw into, which are returned: the heading is their title, and the legend stands below them.

    Returns
    -------
    matplotlib.figure.Figure, or `ax`
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it.

    Raises
    ------
    TypeError, ValueError
        If the features lie along several axes, `values` has another shape, or an argument is out of range.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> rows = np.random.default_rng(0).normal(size=(60, 3))
    >>> sample = metfa.explain(lambda x, target: x * np.array([3.0, 1.0, 0.0]), rows, 0,
    ...                        noise=metfa.noise.Gaussian(0.1), n_samples=10, rng=0)
    >>> figure = metfa.plot.beeswarm(sample.across_inputs(absolute=False))
    """
    with needs_extra("a figure"):
        import matplotlib.figure  # noqa: F401

    check_kind(sample, "sample", AttributionSample, "`sample.across_inputs()`")
    if len(sample.feature_shape) != 1:
        raise ValueError(
            f"`sample` must have features along one axis for points, got shape {sample.feature_shape}: pool them, "
            "`sample.over(regions)`"
        )
    colours = palette_named(palette)
    max_features = positive_int(max_features, "max_features")
    names = sample.feature_names if feature_names is None else checked_names(feature_names, None)
    names = fitting_names(names, sample.feature_shape)
    terms = sample.terms(threshold, alpha=alpha, correction=correction)
    one = sample.of_input(index)
    colouring = _colouring(values, one)
    scores, decision, notes = found(one, terms.of_input(index), confidence_level)
    order = np.argsort(-np.median(np.abs(one.values[:, 0]), axis=0), kind="stable")
    shown, rest = order[:max_features], order[max_features:]
    if rest.size:
        notes.append(not_shown(scores, decision, rest, sample.noun))
    drawn = _drawn(one.n_samples, len(shown))
    noun = one.sample_noun
    if len(drawn) < one.n_samples:
        notes.append(f"{len(drawn):,} of {counted(one.n_samples, noun)} are drawn, chosen by chance; all are counted")
    canvas, panel = new_axes((8.5, ROW_HEIGHT * len(shown) + 2.1 + 0.2 * len(notes)), ax, named="y")
    points = one.values[drawn][:, 0, shown].astype(np.float64)
    _draw_points(panel, points, None if colouring is None else colouring[:, shown], drawn)
    handles = _draw_medians(panel, scores, decision, shown, colours, f"one {noun}", few=len(drawn) <= FEW)
    panel.set_yticks(np.arange(len(shown)), labels=[label_of(names, feature) for feature in shown], **LITERAL)
    panel.tick_params(axis="y", length=0, pad=12, labelsize="small")
    below = [f"{score_name(one)}; the interval is of the median over {counted(one.n_samples, noun)}", *notes]
    panel.set_xlabel("\n".join(textwrap.fill(note, room_of(canvas, 100)) for note in below), fontsize="small")
    if colouring is not None:
        _draw_scale(panel, missing=not np.isfinite(colouring[drawn][:, shown]).all())
    draw_legend(canvas, handles, [] if decision is None else [decision.question(sample.noun)], room=ROOM, width=100)
    flat = [] if decision is None else nothing_stands_out(decision.nothing, 0, sample.noun)
    warned = cautions(one, 0, FLIPS_FROM)
    draw_heading(canvas, title, about=line_of_row(sample, index), cautions=[*warned, *flat])
    return canvas


def _colouring(values: Any, sample: AttributionSample) -> np.ndarray | None:
    """Numbers (samples, features) that colour the points; None if there are none."""
    shape = (sample.n_samples, sample.n_features)
    if values is None:
        table = sample.inputs[0] if isinstance(sample.inputs, np.ndarray) else None
        own = sample.sample_noun == "row" and sample.noun == "feature"
        fits = own and table is not None and table.shape == shape and table.dtype.kind in "biuf"
        return ordered_codes(sample, table) if fits and table is not None else None
    given = to_host(as_array(values, "values"))
    if given.shape != shape or given.dtype.kind not in "biuf":
        raise ValueError(
            f"`values` must be numbers of the shape {shape}, one for each point, got {given.dtype} {given.shape}"
        )
    return given.astype(np.float64)


def _drawn(n: int, n_features: int) -> np.ndarray:
    """Which samples are drawn: all, or some by chance, always the same ones."""
    most = max(1, MOST_POINTS // max(n_features, 1))
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _draw_points(ax: Axes, points: np.ndarray, colouring: np.ndarray | None, drawn: np.ndarray) -> None:
    """Draw the points (drawn, features) of each feature in its row; `colouring` is of all samples."""
    low, high = float(points.min()), float(points.max())
    for place in range(points.shape[1]):
        heights = place + _beside(points[:, place], low, high)
        style: dict[str, Any] = {"s": 9, "linewidths": 0, "zorder": 2, "rasterized": len(drawn) > 1000}
        if colouring is None:
            ax.scatter(points[:, place], heights, color=PLAIN, alpha=0.65, **style)
            continue
        shades = _shades(colouring[:, place])[drawn]
        known = np.isfinite(shades)
        ax.scatter(points[~known, place], heights[~known], color=MISSING, **style)
        ax.scatter(points[known, place], heights[known], c=shades[known], cmap=COLOUR_MAP, vmin=0, vmax=1, **style)


def _beside(points: np.ndarray, low: float, high: float) -> np.ndarray:
    """How far each point lies above or below the middle of its row: those of one bin alternate."""
    width = (high - low) or 1.0
    bins = np.minimum(((points - low) / width * BINS).astype(np.int64), BINS - 1)
    rank = np.empty(len(points), np.int64)
    order = np.argsort(bins, kind="stable")
    first = np.concatenate([[0], np.flatnonzero(np.diff(bins[order])) + 1]) if len(order) else order
    starts = np.zeros(len(points), np.int64)
    starts[first] = first
    rank[order] = np.arange(len(points)) - np.maximum.accumulate(starts)
    steps = (rank + 1) // 2 * np.where(rank % 2, 1, -1)
    return steps * min(0.05, HALF / max(1, int(np.abs(steps).max(initial=0))))


def _shades(numbers: np.ndarray) -> np.ndarray:
    """Numbers of one feature from 0 to 1, nan where they are not finite."""
    known = np.isfinite(numbers)
    if not known.any():
        return np.full(numbers.shape, np.nan)
    low, high = np.percentile(numbers[known], [CLIPPED, 100 - CLIPPED])
    if low == high:
        low, high = numbers[known].min(), numbers[known].max()
    spread = high - low
    scaled = np.clip((numbers - low) / spread, 0, 1) if spread else np.full(numbers.shape, 0.5)
    return np.where(known, scaled, np.nan)


def _draw_medians(
    ax: Axes, scores: Scores, decision: Decision | None, shown: np.ndarray, colours: Palette, point: str, *, few: bool
) -> list[Any]:
    """Draw the interval of each median, and a square with the colour of its mark; returns the legend's entries."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    places = np.arange(len(shown)) + (ASIDE if few else 0)
    handles: list[Any] = [Line2D([], [], linestyle="none", marker="o", markersize=4, color=PLAIN, label=point)]
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    if scores.ends is not None:
        low, high = (end[shown] for end in scores.ends)
        for width, colour in ((5.0, "white"), (2.0, "black")):
            ax.hlines(places, low, high, color=colour, linewidth=width, zorder=4)
            for end in (low, high):
                ax.plot(end, places, "|", color=colour, markersize=11, markeredgewidth=width, zorder=4)
        line: dict[str, Any] = {"color": "black", "linewidth": 2.0, "marker": "|", "markersize": 9}
        handles.append(Line2D([], [], label=f"{scores.intervals(1)} of the median", **line))
    if decision is not None:
        if decision.threshold and np.isfinite(decision.threshold):
            ax.axvline(decision.threshold, color="black", linestyle=":", zorder=3)
            handles.append(Line2D([], [], color="black", linestyle=":", label=f"threshold {decision.threshold:.3g}"))
        for name, mark, colour in colours.of_marks(decision.kinds):
            mine = np.flatnonzero(decision.marks[0, shown] == mark)
            if mine.size:  # the extent of an empty line would take up room
                at = ax.get_yaxis_transform()
                style: dict[str, Any] = {"linestyle": "none", "marker": "s", "markersize": 7, "clip_on": False}
                ax.plot(np.full(len(mine), -0.012), mine, color=colour, transform=at, zorder=5, **style)
            handles.append(Patch(color=colour, label=f"{name}: {(decision.marks == mark).sum()}"))
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return handles


def _draw_scale(ax: Axes, *, missing: bool) -> None:
    """The colours of the feature's values, from low to high."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    bar = ax.figure.colorbar(ScalarMappable(Normalize(0, 1), COLOUR_MAP), ax=ax, fraction=0.03, pad=0.02, aspect=30)
    bar.set_ticks([0, 1], labels=["low", "high"])
    bar.ax.tick_params(labelsize="small", length=0)
    bar.set_label(f"value of the feature in the row{' (grey: none)' * missing}", fontsize="small")
