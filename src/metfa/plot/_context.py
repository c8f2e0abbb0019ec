"""The figure of a scene: an object in it, and which of its surroundings are significantly needed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE, SCORES, Palette, palette_named
from metfa._base.percents import percent
from metfa.plot._canvas import new_figure
from metfa.plot._headings import draw_heading
from metfa.plot.images import (
    FAINT,
    Scale,
    draw_colour_bar,
    draw_note,
    draw_picture,
    draw_scores,
    grey,
    size_of,
)
from metfa.plot.pictures import picture_of
from metfa.results.cautions import FLIPS_FROM, cautions, left_out, line_of_row, nothing_stands_out, outside
from metfa.results.decisions import Decision, TooFewSamplesError
from metfa.segmentation.explanation import ContextExplanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from metfa.plot.settings import InFigure

__all__ = ["context"]


def context(
    explanation: ContextExplanation,
    *,
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
    """Draw the scene with the object's outline, the single and the smoothed explanation, and the significant context.

    Parameters
    ----------
    explanation : ContextExplanation
        Result of `metfa.segmentation.explain_context`.
    title : str, optional
        Heading; shown as plain text.
    threshold, alpha, correction, split
        As for `ContextExplanation.terms`.
    confidence_level : float
        As for `ContextExplanation.smoothed`.
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
    """
    with needs_extra("a figure"):
        import matplotlib.figure  # noqa: F401

    if not isinstance(explanation, ContextExplanation):
        raise TypeError(f"`explanation` must be a ContextExplanation, got {type(explanation).__name__}")
    terms = explanation.terms(threshold, alpha=alpha, correction=correction, split=split)
    colours = palette_named(palette)
    warned = cautions(explanation.sample, 0, flips_from)
    shown, caption = picture_of(explanation.sample)
    n = explanation.n_samples
    canvas = new_figure(size_of(*explanation.region.shape), "compressed", fig)
    axes = canvas.subplots(2, 2).ravel()
    draw_picture(axes[0], shown, f"{caption}\nthe object, outlined")
    vanilla = explanation.vanilla.astype(np.float64)
    few = explanation.sample.too_few_for(confidence_level)
    if few is None:
        smoothed = explanation.smoothed(confidence_level).astype(np.float64)
        of_context = explanation.of_context
        contradicted = outside(of_context, of_context.confidence_interval(confidence_level)).mean()
        count = left_out(of_context, confidence_level)
        alone = f"vanilla\n{percent(contradicted, 1)} outside intervals"
        trimmed = f"smoothed\n{n} samples, {count} + {count} left out"
        maps = [(axes[1], alone, vanilla), (axes[2], trimmed, smoothed)]
    else:
        maps = [(axes[1], "vanilla\none explanation, no noise", vanilla)]
        draw_note(axes[2], shown, "smoothed\n", few)
    highest = max(float(scores.max()) for _, _, scores in maps)
    scale = Scale(0.0, max(highest, 1.0), SCORES, cut=False)  # masks lie in [0, 1], and so do scaled scores
    for ax, name, scores in maps:
        draw_scores(ax, shown, scores, name, scale)
    draw_colour_bar(canvas, axes, scale)
    found = explanation.threshold_on(terms)
    at = "no threshold exists" if math.isnan(found) else f"threshold {found:.2g}"
    name = f"significance, {at}\n{terms.at}, {terms.correction or 'uncorrected'}"
    try:
        decision = explanation.decide(terms)
        _draw_decision(canvas, axes[3], decision, explanation.region, shown, name, colours, faint=bool(warned))
        warned = [*warned, *nothing_stands_out(decision.nothing, 0, "pixel")]
    except TooFewSamplesError as error:
        draw_note(axes[3], shown, name, str(error))
    for ax in axes:
        _draw_outline(ax, explanation.region)
    draw_heading(canvas, title, 90, about=line_of_row(explanation.sample, 0), cautions=warned)
    return canvas


def _draw_outline(ax: Axes, region: np.ndarray) -> None:
    """Draw the object's outline, also along the edges of the picture."""
    height, width = region.shape
    places = np.arange(-1, width + 1), np.arange(-1, height + 1)
    limits = ax.get_xlim(), ax.get_ylim()
    for colour, thickness in (("white", 2.2), ("black", 1)):
        ax.contour(*places, np.pad(region, 1), levels=[0.5], colors=colour, linewidths=thickness)
    ax.set_xlim(limits[0])
    ax.set_ylim(limits[1])


def _draw_decision(
    fig: Figure,
    ax: Axes,
    decision: Decision,
    region: np.ndarray,
    picture: np.ndarray,
    name: str,
    colours: Palette,
    *,
    faint: bool,
) -> None:
    """Draw what is decided about the pixels outside of the region."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    kinds = [
        ("needed", 1, colours.important),
        ("undecided", 0, colours.undecided),
        ("not needed", -1, colours.unimportant),
    ]
    painted = picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=2)
    painted = np.where(region[..., None], painted, grey(picture))
    strength: dict[int, float] = {1: 0.75, 0: 0.6, -1: 0.45}
    if faint:
        strength = dict.fromkeys(strength, FAINT)
    for _, mark, colour in kinds:
        where = np.zeros(region.shape, bool)
        where[~region] = decision.marks[0] == mark
        coloured = strength[mark] * np.array(to_rgb(colour)) + (1 - strength[mark]) * painted
        painted = np.where(where[..., None], coloured, painted)
    draw_picture(ax, painted, name)
    shares = [(kind, colour, percent((decision.marks == mark).mean(), 1)) for kind, mark, colour in kinds]
    opacity = FAINT if faint else 1.0
    handles = [Patch(color=colour, alpha=opacity, label=f"{kind} {share}") for kind, colour, share in shares]
    fig.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, title="context of the object")
