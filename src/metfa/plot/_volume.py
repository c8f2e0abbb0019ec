"""The figure of a volume: three planes through a voxel, the largest scores along each axis, and a row of slices."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE, palette_named
from metfa._base.percents import percent
from metfa._base.validation import check_kind
from metfa.plot._bars import found, score_name
from metfa.plot._canvas import new_figure
from metfa.plot._headings import draw_heading, draw_legend
from metfa.plot.images import common_scale, draw_colour_bar, draw_picture, draw_scores, entries_of, paint_marks
from metfa.plot.kinds import Volume
from metfa.plot.readings import place_noun, said_to_be
from metfa.plot.traces import OVERLAPPING, is_overlapping
from metfa.plot.voxels import NAMES, Voxels
from metfa.results.cautions import FLIPS_FROM, cautions, line_of_row, nothing_stands_out
from metfa.results.compared import STATEMENT
from metfa.results.sample import AttributionSample

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from metfa.plot.settings import InFigure

__all__ = ["volume"]

SLICES = 6
NOWHERE = 2  # instead of a mark, where a voxel is in no region
WIDTH, NARROWEST, TALLEST = 11.0, 8.0, 2.4  # inches of the panels of a row together, and of the tallest one
TITLES, BAR = 0.5, 0.6  # inches of the titles above a row, and of the scale below it


def volume(
    sample: AttributionSample,
    kind: Volume | None = None,
    *,
    index: int = 0,
    title: str | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
    confidence_level: float = 0.95,
    palette: str = DEFAULT_PALETTE,
    flips_from: float = FLIPS_FROM,
    fig: InFigure | None = None,
) -> InFigure:
    """Draw three planes of a volume with scores and with marks, the largest scores along each axis, and six slices.

    The planes cross in one voxel, the one with the largest smoothed score if none is given. The third row is a maximum
    projection: of all voxels along an axis the score that is largest by absolute value. The slices of the last row go
    evenly from the first to the last one with an important voxel, or through the whole volume if there is none. All
    panels have the proportions of the voxels' `spacing`, and one scale of colours.

    Parameters
    ----------
    sample : AttributionSample
        With maps (depth, height, width), or with blocks of such maps as features (`metfa.regions.blocks`).
    kind : Volume, optional
        Distances of the voxels, and through which one the planes go.
    index : int
        Which input of the batch.
    title : str, optional
        Heading; shown as plain text. Below it stand the input's place in the batch and the class that was explained.
    threshold, alpha, correction, split
        As for `AttributionSample.terms`.
    confidence_level : float
        Level of the intervals that the smoothed scores are averages within.
    palette : {"colourblind", "paper"}
        Colours of the marks: a set for all colour visions and for grey prints, or the paper's.
    flips_from : float
        Share of noisy inputs with another prediction, from which on the title says so and the marks are faint.
    fig : matplotlib.figure.Figure or SubFigure, optional
        An empty figure with ``layout="constrained"``, or a subfigure of one, to draw into: it is returned.

    Returns
    -------
    matplotlib.figure.Figure, or `fig`
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it.

    Raises
    ------
    TypeError, ValueError
        If the maps are no volumes, or an argument is out of range. Too few samples are no error: the figure says so.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> inputs = np.random.default_rng(0).random((1, 1, 4, 6, 6))
    >>> noise = metfa.noise.Uniform(0.1)
    >>> sample = metfa.explain(lambda x, target: x[:, 0], inputs, 0, noise=noise, n_samples=20, rng=0)
    >>> figure = metfa.plot.volume(sample, metfa.plot.Volume(spacing=(3, 1, 1), unit="mm"))
    """
    with needs_extra("a figure"):
        import matplotlib.figure  # noqa: F401

    check_kind(sample, "sample", AttributionSample, "`metfa.explain`")
    known = said_to_be(Volume, sample, kind)
    colours = palette_named(palette)
    terms = sample.terms(threshold, alpha=alpha, correction=correction, split=split)
    one = sample.of_input(index)
    warned = cautions(one, 0, flips_from)
    voxels = Voxels.of(one, known)
    scores, decision, notes = found(one, terms.of_input(index), confidence_level, None)
    values = np.append(scores.values, np.nan)[voxels.cells]
    marks = np.zeros(one.n_features, np.int8) if decision is None else decision.marks[0]
    look = _Look(
        np.append(marks, NOWHERE)[voxels.cells],
        None if decision is None else colours.of_marks(decision.kinds),
        faint=bool(warned),
    )
    at = known.at or _strongest(values, voxels)
    scale = common_scale([np.nan_to_num(values)], about_0=one.pair is not None)
    canvas, rows = _panels(voxels, fig)
    called = scores.called.split(",")[0]
    for axis in range(3):
        picture, place = voxels.picture.take(at[axis], axis), voxels.place(axis, at[axis])
        draw_scores(rows[0][axis], picture, values.take(at[axis], axis), f"{place}\n{called}", scale)
        _draw_marks(rows[1][axis], look, voxels, axis, at[axis], f"{place}\nsignificance")
        name = f"largest score along the {NAMES[axis]}s"
        draw_scores(rows[2][axis], voxels.picture.max(axis), _largest(values, axis), name, scale)
        for row in rows[:2]:
            _draw_cross(row[axis], at, axis)
        for row in rows[:3]:
            row[axis].set_aspect(voxels.aspects[axis])
    for ax, number in zip(rows[3], _slices(look.marks, known.axis), strict=False):
        here = look.marks.take(number, known.axis)
        share = "" if decision is None else f"{percent((here == 1).mean(), 1)} {decision.kinds[1]}"
        name = "\n".join([voxels.place(known.axis, number), *textwrap.wrap(share, 20)])
        _draw_marks(ax, look, voxels, known.axis, number, name)
        ax.set_aspect(voxels.aspects[known.axis])
        ax.title.set_fontsize("small")
    draw_colour_bar(canvas, rows[2], scale, label=score_name(one), location="bottom", aspect=50, fraction=0.08)
    if overlapping := is_overlapping(one):
        notes.append(OVERLAPPING)
    if (voxels.cells < 0).any():
        notes.append("voxels in no region show the picture alone")
    noun = place_noun(one, known)
    said = [*([] if decision is None else [decision.question(noun)]), *notes, *[STATEMENT][: one.pair is not None]]
    chosen = "as given" if known.at else "which has the largest score" + " of those shown" * overlapping
    behind = "" if voxels.caption == "picture" else f"; behind the scores: {voxels.caption}"
    said.append(f"planes through slice {at[0]}, row {at[1]}, column {at[2]}, {chosen}{behind}")
    handles = [] if decision is None else entries_of(decision, look.kinds or [], faint=look.faint)
    draw_legend(canvas, handles, said, room=140, width=130)
    flat = [] if decision is None else nothing_stands_out(decision.nothing, 0, noun)
    draw_heading(canvas, title, 100, about=line_of_row(sample, index), cautions=[*warned, *flat])
    return canvas


@dataclass(frozen=True, eq=False)
class _Look:
    """Marks of all voxels, or `NOWHERE`; name, mark and colour of each kind, None where nothing could be decided."""

    marks: np.ndarray
    kinds: list[tuple[str, int, str]] | None
    faint: bool


def _panels(voxels: Voxels, given: Any) -> tuple[Any, list[np.ndarray]]:
    """Three rows of planes, across slices, rows and columns, and a row of slices along one axis; and their figure."""
    shape, axis = voxels.cells.shape, voxels.kind.axis
    depth, height, width = (side * step for side, step in zip(shape, voxels.kind.spacing, strict=True))
    planes = [(height, width), (depth, width), (depth, height)]
    widths = [max(wide, max(width, height) / 4) for _, wide in planes]  # so that titles have room
    tallest = max(tall for tall, _ in planes)
    inch = min(WIDTH / sum(widths), TALLEST / tallest)
    across = max(inch * sum(widths), NARROWEST)
    tall, wide = planes[axis]
    small = min(across / SLICES * tall / wide, TALLEST)
    large = max(tallest * inch, 0.9) + TITLES
    heights = [large, large, large + BAR, small + TITLES]
    fig = new_figure((across + 0.6, sum(heights) + 1.5), "constrained", given)
    grid = fig.add_gridspec(4, 1, height_ratios=heights)
    planes_of = [grid[row].subgridspec(1, 3, width_ratios=widths) for row in range(3)]
    rows = [np.asarray(one.subplots()) for one in (*planes_of, grid[3].subgridspec(1, SLICES))]
    for ax in rows[3]:
        ax.set_axis_off()
    return fig, rows


def _strongest(values: np.ndarray, voxels: Voxels) -> tuple[int, int, int]:
    """The voxel with the largest score by absolute value; of a region the voxel nearest to its middle."""
    places = np.argwhere(voxels.cells == voxels.cells.flat[np.nanargmax(np.abs(values))])
    nearest = places[((places - places.mean(axis=0)) ** 2).sum(axis=1).argmin()]
    return int(nearest[0]), int(nearest[1]), int(nearest[2])


def _largest(values: np.ndarray, axis: int) -> np.ndarray:
    """The score that is largest by absolute value along an axis; NaN where there is none."""
    places = np.expand_dims(np.nan_to_num(np.abs(values), nan=-1).argmax(axis), axis)
    return np.take_along_axis(values, places, axis).squeeze(axis)


def _slices(marks: np.ndarray, axis: int) -> list[int]:
    """Numbers of at most six slices, evenly over those with a mark above the threshold; with neighbours of a few."""
    others = tuple(other for other in range(3) if other != axis)
    marked = np.flatnonzero((marks == 1).any(axis=others))
    first, last = (marked[0], marked[-1]) if marked.size else (0, marks.shape[axis] - 1)
    missing = max(0, SLICES - (last - first + 1))
    first = max(0, min(first - missing // 2, marks.shape[axis] - SLICES))
    last = min(marks.shape[axis] - 1, max(last, first + SLICES - 1))
    return np.unique(np.rint(np.linspace(first, last, SLICES)).astype(int)).tolist()


def _draw_marks(ax: Axes, look: _Look, voxels: Voxels, axis: int, number: int, name: str) -> None:
    picture = voxels.picture.take(number, axis)
    if look.kinds is None:
        draw_picture(ax, picture, name.replace("significance", "no decision"))
    else:
        paint_marks(ax, look.marks.take(number, axis), picture, name, look.kinds, faint=look.faint)


def _draw_cross(ax: Axes, at: tuple[int, int, int], axis: int) -> None:
    """Where the two other planes lie in that across an axis."""
    row, column = (at[other] for other in range(3) if other != axis)
    for colour, width in (("black", 1.6), ("white", 0.7)):
        ax.axhline(row, color=colour, linewidth=width, alpha=0.8)
        ax.axvline(column, color=colour, linewidth=width, alpha=0.8)
