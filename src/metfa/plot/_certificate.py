"""The figure of certified radii: how far an image may change while each of its pixels stays significant."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.percents import percent
from metfa._base.validation import check_kind
from metfa.plot._canvas import new_figure
from metfa.plot._headings import draw_heading
from metfa.plot.images import FAINT, Scale, draw_colour_bar, draw_picture, grey, size_of
from metfa.plot.pictures import picture_of
from metfa.results.cautions import FLIPS_FROM, cautions, line_of_row
from metfa.results.certified import assumption_of, certified
from metfa.results.sample import AttributionSample

if TYPE_CHECKING:
    from metfa.plot.settings import InFigure

__all__ = ["certificate"]

COLOURS = "viridis"  # not the colours of scores, because a radius is a length


def certificate(
    sample: AttributionSample,
    threshold: Any = None,
    *,
    index: int = 0,
    title: str | None = None,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
    flips_from: float = FLIPS_FROM,
    fig: InFigure | None = None,
) -> InFigure:
    """Draw the picture, and certified radii above and below the threshold, with one colour scale.

    Parameters
    ----------
    sample : AttributionSample
        With maps (height, width), under Gaussian noise.
    threshold, alpha, correction, split
        As for `AttributionSample.certified_radius`.
    index : int
        Which input of the batch.
    title : str, optional
        Heading; shown as plain text.
    flips_from : float
        Share of noisy inputs with another prediction, from which on the title says so and the radii are faint.
    fig : matplotlib.figure.Figure or SubFigure, optional
        An empty figure with ``layout="constrained"``, or a subfigure of one, to draw into: it is returned.

    Returns
    -------
    matplotlib.figure.Figure, or `fig`
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it. Pixels without a certificate show the
        picture in grey.

    Raises
    ------
    ValueError
        If the maps are not images, and as for `AttributionSample.certified_radius`.
    """
    with needs_extra("a figure"):
        from matplotlib import colormaps

    check_kind(sample, "sample", AttributionSample, "`metfa.explain`")
    if len(sample.feature_shape) != 2:
        raise ValueError(
            f"`sample` must hold maps (height, width) to be drawn, got features of shape {sample.feature_shape}"
        )
    terms = sample.terms(threshold, alpha=alpha, correction=correction, split=split)
    one = sample.of_input(index)
    radii, decision = certified(one, terms.of_input(index))
    radius, marks = radii[0], decision.marks[0]
    shown, caption = picture_of(one)
    warned = cautions(one, 0, flips_from)
    strength = FAINT if warned else 0.85
    canvas = new_figure(_flat(*sample.feature_shape), "compressed", fig)
    axes = canvas.subplots(1, 3)
    draw_picture(axes[0], shown, caption)
    scale = Scale(0.0, float(radius.max()) or 1.0, COLOURS, cut=False)
    for ax, side, name in ((axes[1], 1, decision.kinds[1]), (axes[2], -1, decision.kinds[-1])):
        here = marks == side
        weight = np.where(here & (radius > 0), strength, 0.0)[..., None]
        painted = weight * colormaps[COLOURS](radius / scale.high)[..., :3] + (1 - weight) * grey(shown)
        draw_picture(ax, painted, f"{name}, {percent(here.mean(), 1)}\nholds for changes below the radius")
    said = ["certified radius (L2)", terms.level, *filter(None, [assumption_of(terms)])]
    draw_colour_bar(canvas, axes, scale, label="\n".join(textwrap.fill(line, 40) for line in said))
    draw_heading(canvas, title, 100, about=line_of_row(sample, index), cautions=warned)
    return canvas


def _flat(height: int, width: int) -> tuple[float, float]:
    """Size in inches for one row of three panels."""
    across, down = size_of(height, width)
    return across, down / 2 + 0.1
