"""Figures with matplotlib: the six maps of one image, on one colour scale, with what they claim beside them."""

from __future__ import annotations

import base64
import html
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa import stats
from metfa.result import AttributionSample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PALETTES", "figure", "notebook_html"]


@dataclass(frozen=True)
class Palette:
    """Colours of the significance map and the colour map of the scores."""

    important: str
    undecided: str
    unimportant: str
    scores: str


PALETTES = {
    "paper": Palette(important="#ffe11a", undecided="#46085c", unimportant="#12603a", scores="inferno"),
    "colourblind": Palette(important="#e69f00", undecided="#9a9a9a", unimportant="#0b5394", scores="cividis"),
}


def figure(
    sample: AttributionSample,
    *,
    index: int = 0,
    picture: np.ndarray | None = None,
    title: str | None = None,
    threshold: Any = stats.jenks,
    alpha: float = 0.05,
    correction: str | None = None,
    confidence_level: float = 0.95,
    palette: str = "paper",
) -> Figure:
    """Picture, vanilla, smoothed, lower bound, upper bound and significance map of one image.

    The four score maps share one colour scale, so that they can be compared; its top is cut where only 1 in 1,000
    values lies above, and the colour bar's arrow says so.

    Parameters
    ----------
    sample : AttributionSample
        With maps (height, width).
    index : int
        Which input of the batch.
    picture : ndarray, optional
        Picture to lay the maps over, (height, width) or (height, width, 3) in [0, 1]; by default the input itself, if
        it is (channels, height, width) in [0, 1].
    title : str, optional
        Heading; shown as plain text.
    threshold, alpha, correction, confidence_level
        As for `AttributionSample.significance_map` and `AttributionSample.confidence_interval`.
    palette : {"paper", "colourblind"}
        Colours: the paper's, or a colour-blind-safe set.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it.

    Raises
    ------
    ValueError
        If the maps are not images, or `index` or `palette` does not exist.
    """
    from matplotlib.figure import Figure

    if len(sample.feature_shape) != 2:
        raise ValueError(
            f"`sample` must hold maps (height, width) to be drawn, got features of shape {sample.feature_shape}"
        )
    if palette not in PALETTES:
        raise ValueError(f"`palette` must be one of {sorted(PALETTES)}, got {palette!r}")
    batch = sample.values.shape[1]
    if not 0 <= index < batch:
        raise ValueError(f"`index` must lie in 0..{batch - 1}, got {index}")
    colours = PALETTES[palette]
    shown, caption = _picture(sample, index) if picture is None else (np.asarray(picture), "picture")
    maps = _score_maps(sample, index, confidence_level)
    drawn = [scores for _, scores in maps if scores is not None]
    top = max(float(np.quantile(np.stack(drawn), 0.999)), np.finfo(np.float32).tiny)
    height, width = sample.feature_shape
    fig = Figure(figsize=_size(height, width))
    grid = fig.add_gridspec(
        2, 4, width_ratios=[1, 1, 1, 0.05], left=0.02, right=0.92, top=0.86, bottom=0.1, wspace=0.06
    )
    axes = [fig.add_subplot(grid[place // 3, place % 3]) for place in range(6)]
    for ax in axes:
        ax.set_axis_off()
    _draw_picture(axes[0], shown, caption)
    for ax, (name, scores) in zip(axes[1:5], maps, strict=True):
        if scores is None:
            needed = stats.min_samples(1 - confidence_level)
            _draw_note(ax, name, f"{sample.n_samples} samples are too few: {confidence_level:.0%} needs {needed}")
        else:
            _draw_scores(ax, shown, scores, top, name, colours.scores)
    _draw_colour_bar(fig.add_subplot(grid[:, 3]), top, colours.scores, cut=max(float(s.max()) for s in drawn) > top)
    _draw_significance(axes[5], sample, index, shown, threshold, alpha, correction, colours)
    if title is not None:
        fig.suptitle(_plain(title), fontsize="large")
    return fig


def notebook_html(sample: AttributionSample) -> str:
    """What a notebook shows: the first image's figure and the sample's repr, everything escaped."""
    text = f"<pre>{html.escape(repr(sample))}</pre>"
    if len(sample.feature_shape) != 2:
        return text
    try:
        drawn = figure(sample)
    except (ImportError, ValueError):
        return text
    buffer = io.BytesIO()
    drawn.savefig(buffer, format="png", dpi=72)
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="attribution maps with their significance" src="data:image/png;base64,{encoded}">{text}'


def _picture(sample: AttributionSample, index: int) -> tuple[np.ndarray, str]:
    height, width = sample.feature_shape
    image = sample.inputs[index] if isinstance(sample.inputs, np.ndarray) else np.zeros(0)
    if (
        image.shape[-2:] != (height, width)
        or image.ndim not in (2, 3)
        or (image.ndim == 3 and image.shape[0] not in (1, 3))
    ):
        return np.ones((height, width)), "no picture"
    image = np.asarray(image, dtype=np.float64)
    caption = "picture"
    if image.min() < -1e-6 or image.max() > 1 + 1e-6:
        image = (image - image.min()) / (image.max() - image.min())
        caption = "input, rescaled to be shown"
    return (np.moveaxis(image, 0, -1) if image.shape[0] == 3 else image.reshape(height, width)), caption


def _score_maps(sample: AttributionSample, index: int, confidence_level: float) -> list[tuple[str, np.ndarray | None]]:
    vanilla = ("vanilla: one explanation, no noise", sample.vanilla[index])
    if sample.n_samples < stats.min_samples(1 - confidence_level):
        return [vanilla, ("smoothed", None), ("lower bound", None), ("upper bound", None)]
    interval = sample.confidence_interval(confidence_level)
    smoothed = sample.smoothed(confidence_level)[index]
    level = f"({interval.confidence_level:.1%})"
    return [
        vanilla,
        (f"smoothed over {sample.n_samples} samples", smoothed),
        (f"lower bound {level}", interval.low[index]),
        (f"upper bound {level}", interval.high[index]),
    ]


def _grey(picture: np.ndarray) -> np.ndarray:
    grey = picture @ [0.299, 0.587, 0.114] if picture.ndim == 3 else picture
    return np.repeat(np.clip(0.25 + 0.6 * grey, 0, 1)[..., None], 3, axis=2)


def _draw_picture(ax: Axes, picture: np.ndarray, caption: str) -> None:
    ax.imshow(np.clip(picture, 0, 1), cmap="gray", vmin=0, vmax=1)
    ax.set_title(caption, fontsize="medium")


def _draw_scores(ax: Axes, picture: np.ndarray, scores: np.ndarray, top: float, name: str, colour_map: str) -> None:
    from matplotlib import colormaps

    scaled = np.clip(scores / top, 0, 1)
    weight = np.clip(0.35 + 2.5 * scaled, 0, 1)[..., None]  # faint scores let the picture through
    ax.imshow(weight * colormaps[colour_map](scaled)[..., :3] + (1 - weight) * _grey(picture), interpolation="nearest")
    constant = scores.min() == scores.max()
    ax.set_title(f"{name} (constant: {scores.flat[0]:.3g})" if constant else name, fontsize="medium")


def _draw_colour_bar(ax: Axes, top: float, colour_map: str, *, cut: bool) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import Normalize

    bar = Colorbar(ax, ScalarMappable(Normalize(0, top), colour_map), extend="max" if cut else "neither")
    bar.set_label("attribution score")


def _draw_note(ax: Axes, title: str, text: str) -> None:
    from textwrap import fill

    ax.set_title(title, fontsize="medium")
    wrapped = fill(_plain(text), 40)
    ax.text(0.5, 0.5, wrapped, ha="center", va="center", fontsize="small", transform=ax.transAxes)


def _draw_significance(
    ax: Axes,
    sample: AttributionSample,
    index: int,
    picture: np.ndarray,
    threshold: Any,
    alpha: float,
    correction: str | None,
    colours: Palette,
) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    title = f"significance, alpha {alpha:g}, {correction or 'uncorrected'}"
    try:
        marks = sample.significance_map(threshold, alpha=alpha, correction=correction)[index]
    except ValueError as error:
        _draw_note(ax, title, str(error))
        return
    ax.set_title(title, fontsize="medium")
    kinds = [
        ("important", 1, colours.important),
        ("undecided", 0, colours.undecided),
        ("unimportant", -1, colours.unimportant),
    ]
    painted = np.zeros((*marks.shape, 3))
    for _, mark, colour in kinds:
        painted[marks == mark] = to_rgb(colour)
    ax.imshow(0.8 * painted + 0.2 * _grey(picture), interpolation="nearest")
    handles = [Patch(color=colour, label=f"{name} {(marks == mark).mean():.1%}") for name, mark, colour in kinds]
    ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.01),
        ncols=3,
        frameon=False,
        fontsize="small",
        handlelength=1,
        columnspacing=1,
    )


def _size(height: int, width: int) -> tuple[float, float]:
    """Size of the figure in inches for maps of this shape; very long or flat ones keep a readable size."""
    return 11.6, 3.5 * 2 * min(max(height / width, 0.4), 2.0) + 1.6


def _plain(text: str) -> str:
    """Text that matplotlib does not read as mathematics."""
    return text.replace("$", r"\$")
