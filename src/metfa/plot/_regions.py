"""The figure of regions: where they lie in the picture, and the score of each with its interval."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE, Palette, palette_named
from metfa._base.percents import percent
from metfa._base.provenance import printable
from metfa._base.validation import check_kind
from metfa.plot._bars import draw_bars, found, not_shown, score_name
from metfa.plot._canvas import new_figure
from metfa.plot._headings import LITERAL, draw_heading, draw_legend
from metfa.plot._outlines import fine
from metfa.plot._region_map import draw_letters, draw_regions
from metfa.plot.images import (
    Scale,
    common_scale,
    draw_marks,
    draw_note,
    draw_picture,
    draw_scores,
)
from metfa.plot.pictures import checked_picture, picture_of
from metfa.results.cautions import FLIPS_FROM, cautions, line_of_row, nothing_stands_out
from metfa.results.compared import STATEMENT
from metfa.results.decisions import TooFewSamplesError
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from metfa.plot.settings import InFigure

__all__ = ["regions"]

LETTERS = ascii_uppercase[:20]  # of the regions in the chart, from its top downwards
ROOM = 130  # characters of the entries of a legend beside each other
FEWEST_ROWS = 8  # of the chart, so that two bars are not as thick as the picture


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
    fig: InFigure | None = None,
) -> InFigure:
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
        The same inputs, with the maps (height, width) themselves: their smoothed map and their significance map are
        drawn beside the regions. What is decided about them is by their own default terms (see
        `AttributionSample.terms`), because a correction for 50 regions says nothing of 50,000 pixels.
    picture : ndarray, optional
        Picture below the regions, (height, width) or (height, width, 3) in [0, 1]; by default the input itself. It may
        be larger than the maps; each of their cells then covers a part of it.
    title : str, optional
        Heading; shown as plain text. Below it stand the input's place in the batch and the class that was explained.
    threshold, alpha, correction, split
        As for `AttributionSample.terms`, of the regions; only `alpha` is for the pixels too. A correction also counts
        the regions that are not in the chart.
    confidence_level : float
        Level of each interval; the legend names the exact level reached.
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
        from matplotlib.layout_engine import ConstrainedLayoutEngine

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
    shown = fine(shown)
    scores, decision, notes = found(one, terms.of_input(index), confidence_level)
    largest = np.argsort(-np.abs(scores.values), kind="stable")
    charted, rest = np.split(largest, [len(LETTERS)])
    charted = charted[np.argsort(-scores.values[charted], kind="stable")]
    if rest.size:
        notes.append(not_shown(scores, decision, rest, "region"))
    labels = _labels(one, asked.of_input(index), charted)
    canvas = new_figure(_size(shown, labels, pixels=alone is not None), ConstrainedLayoutEngine(h_pad=0.1), fig)
    axes = _panels(canvas, pixels=alone is not None)
    draw_picture(axes["picture"], shown, caption)
    places = draw_regions(axes["regions"], shown, asked.of_input(index), decision, colours, faint=bool(warned))
    draw_letters(axes["regions"], shown, asked.of_input(index), dict(zip(LETTERS, charted.tolist(), strict=False)))
    handles = draw_bars(axes["chart"], scores, decision, charted, colours, faint=bool(warned))
    axes["chart"].set_yticks(np.arange(len(charted)), labels=labels, fontsize="small", **LITERAL)
    axes["chart"].tick_params(axis="y", length=0)
    axes["chart"].locator_params(axis="x", nbins=5)
    axes["chart"].set_ylim(max(len(charted), FEWEST_ROWS) - 0.4, -0.6)
    about = f"{score_name(one)}: {scores.called}; in brackets the share of the picture"
    axes["chart"].set_xlabel(textwrap.fill(about, 56), fontsize="small", loc="right")
    said = [*([] if decision is None else [decision.question("region")]), *notes, *[STATEMENT][: one.pair is not None]]
    if alone is None:
        _legend(canvas, [*handles, *places], said, "outside lower center", 100)
    else:
        _legend(canvas, [*handles, *places], said, "outside lower left", 92)
        pixel_terms = alone.terms(alpha=alpha)
        of_pixels = _draw_pixels(axes, alone, pixel_terms, shown, confidence_level, colours, faint=bool(warned))
        _legend(canvas, *of_pixels, "outside lower right", 60)
    flat = [] if decision is None else nothing_stands_out(decision.nothing, 0, "region")
    draw_heading(canvas, title, 100, about=line_of_row(sample, index), cautions=[*warned, *flat])
    return canvas


def _checked_pixels(pixels: Any, sample: AttributionSample) -> AttributionSample:
    """The maps beside the regions; raises unless they are of the same inputs and of the shape that was pooled."""
    check_kind(pixels, "pixels", AttributionSample, "`metfa.explain`")
    shape = sample.regions.feature_shape if sample.regions is not None else ()
    if pixels.feature_shape != shape:
        raise ValueError(f"`pixels` must hold the maps {shape} that were pooled, got {pixels.feature_shape}")
    if (pixels.input_names, repr(pixels.target)) != (sample.input_names, repr(sample.target)):
        raise ValueError("`pixels` must be of the inputs and the classes of `sample`, got others")
    return pixels


def _size(picture: np.ndarray, labels: Sequence[str], *, pixels: bool) -> tuple[float, float]:
    """Size in inches for this picture and a chart with these labels."""
    height, width = picture.shape[:2]
    ratio = min(max(height / width, 0.4), 1.5)
    chart = sum(0.1 + 0.14 * (1 + label.count("\n")) for label in labels)
    return 13.6, max((6.2 if pixels else 4.2) * ratio, chart, 3.0) + 2.1


def _panels(fig: Figure, *, pixels: bool) -> dict[str, Axes]:
    if not pixels:
        return fig.subplot_mosaic([["picture", "regions", "chart"]], width_ratios=[4, 4, 3])
    rows: Any = [["regions", "chart", small] for small in ("picture", "smoothed", "significance")]
    axes = fig.subplot_mosaic(rows, width_ratios=[6, 3.2, 2])
    for small in ("picture", "smoothed", "significance"):
        axes[small].set_anchor("W")
    return axes


def _legend(fig: Figure, handles: list[Any], said: Sequence[str], loc: Any, width: int) -> None:
    if handles:
        draw_legend(fig, handles, said, room=ROOM, width=width, loc=loc, alignment="left")


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
        draw_note(axes["smoothed"], picture, "smoothed\neach pixel", few, small=True)
    else:
        smoothed = sample.smoothed(confidence_level)[0].astype(np.float64)
        scale = common_scale([smoothed], about_0=sample.pair is not None)
        draw_scores(axes["smoothed"], picture, smoothed, "smoothed\neach pixel", scale)
        _draw_scale(axes["smoothed"], scale)
    name = "significance\neach pixel"
    try:
        decision = sample.decide(terms)
    except TooFewSamplesError as error:
        draw_note(axes["significance"], picture, name, str(error), small=True)
        return [], []
    return draw_marks(axes["significance"], decision, picture, name, colours, faint=faint), [decision.question("pixel")]
