"""The figure of regions: where they lie in the picture, and the score of each with its interval."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE, Palette, palette_named
from metfa._base.percents import counted, percent
from metfa._base.provenance import printable
from metfa._base.validation import check_kind
from metfa.plot._bars import draw_bars, found, not_shown, score_name
from metfa.plot._headings import LITERAL, draw_heading
from metfa.plot._outlines import enlarged, inner_point, outline
from metfa.plot.images import (
    FAINT,
    Scale,
    checked_picture,
    common_scale,
    draw_marks,
    draw_note,
    draw_picture,
    draw_scores,
    grey,
    picture_of,
)
from metfa.results.cautions import FLIPS_FROM, cautions, line_of_row, nothing_stands_out
from metfa.results.decisions import Decision, TooFewSamplesError
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["regions"]

LETTERS = ascii_uppercase[:20]  # of the regions in the chart, from its top downwards
FILL = {1: 0.62, 0: 0.3, -1: 0.62}  # weight of the colour of a mark over the grey picture
WIDTH = {1: 2.2, 0: 0.8, -1: 0.8}  # of the outlines
FEWEST_ROWS = 8  # of the chart, so that two bars are not as thick as the picture
FINEST = 160  # pixels: the corners of maps with fewer would be cut off visibly
PALE = 0.75  # weight of white where no region is


def regions(
    sample: AttributionSample,
    *,
    index: int = 0,
    pixels: AttributionSample | None = None,
    picture: np.ndarray | None = None,
    title: str | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
    confidence_level: float = 0.95,
    palette: str = DEFAULT_PALETTE,
    flips_from: float = FLIPS_FROM,
) -> Figure:
    """Draw the regions of one picture, coloured by what is decided about them, and a chart of their scores.

    The chart shows the 20 regions with the largest absolute scores, sorted by their smoothed score: the score as a bar,
    the exact interval as error bar, the vanilla score as a diamond. Each has a letter, which stands at the same region
    in the picture, and its share of the picture in brackets. Regions above the threshold ("more than the rest",
    "important") also have a thicker outline, so that a print without colours shows them too. Where regions overlap, no
    fill is drawn, and the outlines have the colours.

    Parameters
    ----------
    sample : AttributionSample
        With regions of maps (height, width) as features: ``sample.over(regions)``, or of ``metfa.explain(over=...)``.
    index : int
        Which input of the batch.
    pixels : AttributionSample, optional
        The same inputs, with the maps (height, width) themselves: their smoothed map and their significance map, by
        their own default threshold, are drawn beside the regions.
    picture : ndarray, optional
        Picture below the regions, (height, width) or (height, width, 3) in [0, 1]; by default the input itself. It may
        be larger than the maps; each of their cells then covers a part of it.
    title : str, optional
        Heading; shown as plain text. Below it stand the input's place in the batch and the class that was explained.
    threshold, alpha, correction, split
        As for `AttributionSample.terms`, of the regions; `alpha` and `correction` are for the pixels too. A correction
        also counts the regions that are not in the chart.
    confidence_level : float
        Level of each interval; the legend names the exact level reached.
    palette : {"colourblind", "paper"}
        Colours of the marks: a set for all colour visions and for grey prints, or the paper's.
    flips_from : float
        Share of noisy inputs with another prediction, from which on the title says so and the marks are faint.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it.

    Raises
    ------
    TypeError, ValueError
        If `sample` is not of regions of maps, `pixels` is of other inputs or maps, or an argument is out of range. Too
        few samples are no error: the figure says so.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> inputs = np.random.default_rng(0).random((1, 8, 8))
    >>> sample = metfa.explain(lambda x, target: x**2, inputs, 0, noise=metfa.noise.Uniform(0.1), n_samples=20, rng=0)
    >>> quarters = np.kron([[0, 1], [2, 3]], np.ones((4, 4), int))
    >>> pooled = sample.over(metfa.Regions(quarters, against="rest"))
    >>> figure = metfa.plot.regions(pooled, pixels=sample, correction="holm")
    """
    with needs_extra("a figure"):
        from matplotlib.figure import Figure

    check_kind(sample, "sample", AttributionSample, "`metfa.explain`")
    asked = sample.regions
    if asked is None or len(asked.feature_shape) != 2:
        got = "single features" if asked is None else f"regions of maps {asked.feature_shape}"
        raise ValueError(
            f"`sample` must hold regions of maps (height, width) to be drawn, got {got}: write `sample.over(regions)`; "
            "`metfa.plot.bars` draws features along one axis"
        )
    colours = palette_named(palette)
    terms = sample.terms(threshold, alpha=alpha, correction=correction, split=split)
    one = sample.of_input(index)
    alone = None if pixels is None else _checked_pixels(pixels, sample).of_input(index)
    warned = cautions(one, 0, flips_from)
    shown, caption = picture_of(one) if picture is None else (checked_picture(picture, one), "picture")
    shown = _fine(shown)
    scores, decision, notes = found(one, terms.of_input(index), confidence_level)
    largest = np.argsort(-np.abs(scores.values), kind="stable")
    charted, rest = np.split(largest, [len(LETTERS)])
    charted = charted[np.argsort(-scores.values[charted], kind="stable")]
    if rest.size:
        notes.append(not_shown(scores, decision, rest, "region"))
    labels = _labels(one, asked.of_input(index), charted)
    fig = Figure(figsize=_size(shown, labels, pixels=alone is not None), layout="constrained")
    fig.get_layout_engine().set(h_pad=0.1)
    axes = _panels(fig, pixels=alone is not None)
    draw_picture(axes["picture"], shown, caption)
    masks = [enlarged(mask, shown.shape[:2]) for mask in asked.of_input(index).as_masks()]
    places = _draw_regions(axes["regions"], shown, masks, asked.against, decision, colours, faint=bool(warned))
    _draw_letters(axes["regions"], masks, charted)
    handles = draw_bars(axes["chart"], scores, decision, charted, colours, faint=bool(warned))
    axes["chart"].set_yticks(np.arange(len(charted)), labels=labels, fontsize="small", **LITERAL)
    axes["chart"].tick_params(axis="y", length=0)
    axes["chart"].locator_params(axis="x", nbins=5)
    axes["chart"].set_ylim(max(len(charted), FEWEST_ROWS) - 0.4, -0.6)
    axes["chart"].set_xlabel(
        textwrap.fill(f"{score_name(one)}: {scores.called}; in brackets the share of the picture", 56),
        fontsize="small",
        loc="right",
    )
    said = [*([] if decision is None else [decision.question("region")]), *notes]
    _legend(fig, [*handles, *places], said, *(("lower center", 100) if alone is None else ("lower left", 92)))
    if alone is not None:
        pixel_terms = alone.terms(alpha=alpha, correction=correction)
        of_pixels = _draw_pixels(axes, alone, pixel_terms, shown, confidence_level, colours, faint=bool(warned))
        _legend(fig, *of_pixels, "lower right", 60)
    flat = [] if decision is None else nothing_stands_out(decision.nothing, 0, "region")
    draw_heading(fig, title, 100, about=line_of_row(sample, index), cautions=[*warned, *flat])
    return fig


def _checked_pixels(pixels: Any, sample: AttributionSample) -> AttributionSample:
    """The maps beside the regions; raises unless they are of the same inputs and of the shape that was pooled."""
    check_kind(pixels, "pixels", AttributionSample, "`metfa.explain`")
    shape = sample.regions.feature_shape if sample.regions is not None else ()
    if pixels.feature_shape != shape:
        raise ValueError(f"`pixels` must hold the maps {shape} that were pooled, got {pixels.feature_shape}")
    if (pixels.input_names, pixels.target) != (sample.input_names, sample.target):
        raise ValueError("`pixels` must be of the inputs and the classes of `sample`, got others")
    return pixels


def _fine(picture: np.ndarray) -> np.ndarray:
    """The picture with so many pixels that outlines follow the edges of its cells."""
    height, width = picture.shape[:2]
    times = -(-FINEST // max(height, width))
    return enlarged(picture, (times * height, times * width))


def _size(picture: np.ndarray, labels: Sequence[str], *, pixels: bool) -> tuple[float, float]:
    """Size in inches for this picture and a chart with these labels."""
    height, width = picture.shape[:2]
    ratio = min(max(height / width, 0.4), 1.5)
    chart = sum(0.1 + 0.14 * (1 + label.count("\n")) for label in labels)
    return 13.6, max((6.2 if pixels else 4.2) * ratio, chart, 3.0) + 2.1


def _panels(fig: Figure, *, pixels: bool) -> dict[str, Axes]:
    if not pixels:
        return fig.subplot_mosaic([["picture", "regions", "chart"]], width_ratios=[4, 4, 3])
    rows = [["regions", "chart", small] for small in ("picture", "smoothed", "significance")]
    axes = fig.subplot_mosaic(rows, width_ratios=[6, 3.2, 2])
    for small in ("picture", "smoothed", "significance"):
        axes[small].set_anchor("W")
    return axes


def _legend(fig: Figure, handles: list[Any], said: Sequence[str], where: str, width: int) -> None:
    if not handles:
        return
    title = "\n".join(textwrap.fill(line, width) for line in said)
    sizes = {"fontsize": "small", "title_fontsize": "small"}
    fig.legend(handles=handles, loc=f"outside {where}", ncols=3, frameon=False, title=title, alignment="left", **sizes)


def _draw_regions(
    ax: Axes,
    picture: np.ndarray,
    masks: list[np.ndarray],
    against: Any,
    decision: Decision | None,
    colours: Palette,
    *,
    faint: bool,
) -> list[Any]:
    """Draw the regions over the picture; returns what the legend says about places."""
    from matplotlib.colors import to_rgb
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks = np.zeros(len(masks), np.int8) if decision is None else decision.marks[0]
    named = [] if decision is None else colours.of_marks(decision.kinds)
    covered = np.sum(masks, axis=0, dtype=np.int32)
    nowhere, several = covered == 0, covered > 1
    painted = grey(picture)
    painted[nowhere] = PALE + (1 - PALE) * painted[nowhere]
    for _, mark, colour in named:
        here = np.any([one for one, own in zip(masks, marks, strict=True) if own == mark] or [nowhere], axis=0)
        here &= covered == 1
        weight = min(FAINT, FILL[mark]) if faint else FILL[mark]
        painted[here] = weight * np.array(to_rgb(colour)) + (1 - weight) * painted[here]
    draw_picture(ax, painted, _said_of(masks, marks, decision))
    line_colours = {mark: colour for _, mark, colour in named} if several.any() else {}
    slim = min(1.0, (60 / len(masks)) ** 0.5)  # many small regions would be hidden by their outlines
    for mark in (0, -1, 1):  # those that stand out lie on top
        lines = [line for one, own in zip(masks, marks, strict=True) if own == mark for line in outline(one)]
        if lines:
            _draw_lines(ax, lines, line_colours.get(mark, "white"), slim * WIDTH[mark], faint=faint)
    handles: list[Any] = []
    if isinstance(against, np.ndarray):
        lines = outline(enlarged(against, picture.shape[:2]))
        _draw_lines(ax, lines, "black", WIDTH[1], faint=False)
        handles.append(Line2D([], [], color="black", linewidth=WIDTH[1], label="the other region"))
    if nowhere.any():
        white = Patch(facecolor="white", edgecolor="#999999", label=f"in no region: {percent(nowhere.mean(), 0)}")
        handles.append(white)
    if several.any():
        label = f"in several regions, not coloured: {percent(several.mean(), 0)}"
        handles.append(Patch(facecolor="#b0b0b0", edgecolor="#999999", label=label))
    return handles


def _said_of(masks: list[np.ndarray], marks: np.ndarray, decision: Decision | None) -> str:
    """How many regions lie above the threshold, and how much of the picture they are."""
    if decision is None:
        return f"{counted(len(masks), 'region')}\n"
    above = [one for one, own in zip(masks, marks, strict=True) if own == 1]
    share = np.any(above, axis=0).mean() if above else 0.0
    return f"{decision.kinds[1]}: {len(above)} of {counted(len(masks), 'region')}\n{percent(share, 0)} of the picture"


def _draw_lines(ax: Axes, lines: list[np.ndarray], colour: str, width: float, *, faint: bool) -> None:
    """Lines (points, x and y) with a dark and a light edge, so that they are seen over everything."""
    from matplotlib.collections import LineCollection

    light = [] if colour == "white" else [("white", width + 1.2, 1.0)]
    for painted, thickness, opacity in (("black", width + 2.2 * len(light) + 1.0, 0.5), *light, (colour, width, 1.0)):
        look: dict[str, Any] = {"colors": painted, "linewidths": thickness, "joinstyle": "round"}
        ax.add_collection(LineCollection(lines, alpha=opacity * (0.5 if faint else 1), **look), autolim=False)


def _draw_letters(ax: Axes, masks: list[np.ndarray], charted: np.ndarray) -> None:
    """Draw each letter inside its region, outside of the others if it can."""
    from matplotlib.patheffects import withStroke

    alone = np.sum(masks, axis=0, dtype=np.int32) == 1

    around = [withStroke(linewidth=2.4, foreground="white")]
    for letter, region in zip(LETTERS, charted, strict=False):
        own = masks[region] & alone
        row, column = inner_point(own if own.any() else masks[region])
        ax.text(column, row, letter, ha="center", va="center_baseline", fontsize=9, weight="bold", path_effects=around)


def _labels(sample: AttributionSample, regions: Regions, charted: np.ndarray) -> list[str]:
    """The letter, name and share of the picture of each region in the chart."""
    names = sample.feature_names or regions.names
    labels = []
    for letter, region, share in zip(LETTERS, charted, regions.shares()[0][charted], strict=False):
        lines = textwrap.wrap(printable(names[region]), 28, max_lines=2, placeholder=" …") or [""]
        labels.append("\n".join([f"{letter}  {lines[0]}", *lines[1:]]) + f" ({percent(share, 0)})")
    return labels


def _draw_scale(ax: Axes, scale: Scale) -> None:
    """The colour scale of one small map, in a narrow axis beside it that leaves the map as large as its neighbours."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.ticker import MaxNLocator

    bar = ax.inset_axes((1.04, 0, 0.05, 1))
    colours = ScalarMappable(Normalize(scale.low, scale.high), scale.colour_map)
    ax.figure.colorbar(colours, cax=bar, extend="neither" if not scale.cut else "both" if scale.low < 0 else "max")
    bar.yaxis.set_major_locator(MaxNLocator(4))
    bar.tick_params(labelsize="x-small")


def _draw_pixels(
    axes: dict[str, Axes],
    sample: AttributionSample,
    terms: Terms,
    picture: np.ndarray,
    confidence_level: float,
    colours: Palette,
    *,
    faint: bool,
) -> tuple[list[Any], list[str]]:
    """Draw the smoothed map and the significance map of the one input; returns the legend and its question."""
    few = sample.too_few_for(confidence_level)
    if few is not None:
        draw_note(axes["smoothed"], picture, "smoothed, each pixel", few, small=True)
    else:
        smoothed = sample.smoothed(confidence_level)[0].astype(np.float64)
        scale = common_scale([smoothed])
        draw_scores(axes["smoothed"], picture, enlarged(smoothed, picture.shape[:2]), "smoothed, each pixel", scale)
        _draw_scale(axes["smoothed"], scale)
    name = "significance, each pixel"
    try:
        decision = sample.decide(terms)
    except TooFewSamplesError as error:
        draw_note(axes["significance"], picture, name, str(error), small=True)
        return [], []
    return draw_marks(axes["significance"], decision, picture, name, colours, faint=faint), [decision.question("pixel")]
