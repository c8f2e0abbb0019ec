"""A scene, an object in it, and which of its surroundings are significantly needed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa import stats
from metfa._base.lazy import needs_extra
from metfa.plot._headings import draw_heading
from metfa.plot._palettes import Palette, palette_named
from metfa.plot.images import Scale, draw_colour_bar, draw_note, draw_picture, draw_scores, grey, picture_of, size_of
from metfa.results.sample_size import TooFewSamplesError
from metfa.segmentation.explanation import ContextExplanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["context"]


def context(
    explanation: ContextExplanation,
    *,
    title: str | None = None,
    threshold: Any = stats.jenks,
    alpha: float = 0.05,
    correction: str | None = None,
    confidence_level: float = 0.95,
    palette: str = "paper",
) -> Figure:
    """The scene with the object's outline, the single and the smoothed explanation, and the significant context.

    Parameters
    ----------
    explanation : ContextExplanation
        What `metfa.segmentation.explain_context` returned.
    title : str, optional
        Heading; shown as plain text.
    threshold, alpha, correction, confidence_level
        As for `ContextExplanation.significance_map` and `ContextExplanation.smoothed`.
    palette : {"paper", "colourblind"}
        Colours: the paper's, or a colour-blind-safe set.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it.
    """
    with needs_extra("a figure"):
        from matplotlib.figure import Figure

    if not isinstance(explanation, ContextExplanation):
        raise TypeError(f"`explanation` must be a ContextExplanation, got {type(explanation).__name__}")
    colours = palette_named(palette)
    shown, caption = picture_of(explanation.sample)
    n = explanation.n_samples
    fig = Figure(figsize=size_of(*explanation.region.shape), layout="compressed")
    axes = fig.subplots(2, 2).ravel()
    draw_picture(axes[0], shown, f"{caption}\nthe object, outlined")
    vanilla = explanation.vanilla.astype(np.float64)
    maps = [(axes[1], "vanilla\none explanation, no noise", vanilla)]
    few = explanation.sample.too_few_for(confidence_level)
    if few is None:
        smoothed = explanation.smoothed(confidence_level).astype(np.float64)
        maps.append((axes[2], f"smoothed\nover {n} samples", smoothed))
    else:
        draw_note(axes[2], shown, "smoothed\n", few)
    highest = max(float(scores.max()) for _, _, scores in maps)
    scale = Scale(0.0, max(highest, 1.0), colours.scores, cut=False)  # masks lie in [0, 1], and so do scaled scores
    for ax, name, scores in maps:
        draw_scores(ax, shown, scores, name, scale)
    draw_colour_bar(fig, axes, scale)
    _draw_significance(fig, axes[3], explanation, shown, threshold, alpha, correction, colours)
    for ax in axes:
        _draw_outline(ax, explanation.region)
    draw_heading(fig, title, 90)
    return fig


def _draw_outline(ax: Axes, region: np.ndarray) -> None:
    """The object's outline, closed at the edges of the picture too."""
    height, width = region.shape
    places = np.arange(-1, width + 1), np.arange(-1, height + 1)
    limits = ax.get_xlim(), ax.get_ylim()
    for colour, thickness in (("white", 2.2), ("black", 1)):
        ax.contour(*places, np.pad(region, 1), levels=[0.5], colors=colour, linewidths=thickness)
    ax.set_xlim(limits[0])
    ax.set_ylim(limits[1])


def _draw_significance(
    fig: Figure,
    ax: Axes,
    explanation: ContextExplanation,
    picture: np.ndarray,
    threshold: Any,
    alpha: float,
    correction: str | None,
    colours: Palette,
) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    height = explanation._height(threshold)
    at = "no threshold exists" if math.isnan(height) else f"threshold {height:.2g}"
    title = f"significance, {at}\nalpha {alpha:g}, {correction or 'uncorrected'}"
    try:
        marks = explanation.significance_map(threshold, alpha=alpha, correction=correction)
    except TooFewSamplesError as error:
        draw_note(ax, picture, title, str(error))
        return
    outside = ~explanation.region
    kinds = [
        ("needed", 1, colours.important),
        ("undecided", 0, colours.undecided),
        ("not needed", -1, colours.unimportant),
    ]
    painted = picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=2)
    painted = np.where(explanation.region[..., None], painted, grey(picture))
    strength = {1: 0.75, 0: 0.6, -1: 0.45}
    for _, mark, colour in kinds:
        where = (outside & (marks == mark))[..., None]
        painted = np.where(where, strength[mark] * np.array(to_rgb(colour)) + (1 - strength[mark]) * painted, painted)
    draw_picture(ax, painted, title)
    handles = [
        Patch(color=colour, label=f"{name} {(marks[outside] == mark).mean():.1%}") for name, mark, colour in kinds
    ]
    fig.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, title="context of the object")
