"""The figure of one image: the picture and five maps, the scores on one colour scale."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE, SCORES, SIGNED_SCORES, Palette, palette_named
from metfa._base.percents import percent
from metfa._base.validation import check_kind
from metfa.plot._canvas import new_figure
from metfa.plot._headings import LITERAL, draw_heading
from metfa.plot._image_axes import draw_axes
from metfa.plot._outlines import enlarged
from metfa.plot.kinds import Image
from metfa.plot.pictures import checked_picture, picture_of
from metfa.plot.readings import said_to_be
from metfa.results.cautions import FLIPS_FROM, cautions, left_out, line_of_row, nothing_stands_out, outside
from metfa.results.compared import STATEMENT, Compared
from metfa.results.decisions import Decision, TooFewSamplesError
from metfa.results.sample import AttributionSample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    from metfa.plot.settings import InFigure

__all__ = [
    "FAINT",
    "Scale",
    "common_scale",
    "draw_colour_bar",
    "draw_marks",
    "draw_note",
    "draw_picture",
    "draw_scores",
    "entries_of",
    "figure",
    "grey",
    "paint_marks",
    "scale_end",
    "size_of",
]

FAINT = 0.25  # weight of the colours of marks under a caution


@dataclass(frozen=True)
class Scale:
    """Colour scale of all score maps of a figure; `cut` says that some values lie beyond it."""

    low: float
    high: float
    colour_map: str
    cut: bool


def figure(
    sample: AttributionSample,
    *,
    index: int = 0,
    picture: np.ndarray | None = None,
    title: str | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
    confidence_level: float = 0.95,
    palette: str = DEFAULT_PALETTE,
    flips_from: float = FLIPS_FROM,
    kind: Image | None = None,
    fig: InFigure | None = None,
) -> InFigure:
    """Draw picture, vanilla, smoothed, lower bound, upper bound and significance map of one image.

    The four score maps share one colour scale, so that they can be compared. Its end is set so that 1 in 1,000 values
    is larger by absolute value, and an arrow at the colour bar shows this. The scale of signed scores is symmetric
    about 0. Differences have a figure of their own, `comparison`.

    Parameters
    ----------
    sample : AttributionSample
        With maps (height, width).
    index : int
        Which input of the batch.
    picture : ndarray, optional
        Picture below the maps, (height, width) or (height, width, 3) in [0, 1]; by default the input itself, if it is
        (height, width) or (channels, height, width) with 1 or 3 channels. It may be larger than the maps.
    title : str, optional
        Heading; shown as plain text. Below it stand the input's place in the batch and the class that was explained.
    threshold, alpha, correction, split
        As for `AttributionSample.terms`.
    confidence_level : float
        As for `AttributionSample.confidence_interval`.
    palette : {"colourblind", "paper"}
        Colours of the marks: a set for all colour visions and for grey prints, or the paper's.
    flips_from : float
        Share of noisy inputs with another prediction, from which on the title says so and the marks are faint.
    kind : Image, optional
        Labels and values of rows and columns, as of a spectrogram.
    fig : matplotlib.figure.Figure or SubFigure, optional
        An empty figure with ``layout="constrained"``, or a subfigure of one, to draw into: it is returned.

    Returns
    -------
    matplotlib.figure.Figure, or `fig`
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it.

    Raises
    ------
    ValueError
        If the maps are not images, or an argument is out of range. Too few samples are no error: the panels say so.
    """
    with needs_extra("a figure"):
        import matplotlib.figure  # noqa: F401

    check_kind(sample, "sample", AttributionSample, "`metfa.explain`")
    if len(sample.feature_shape) != 2:
        raise ValueError(
            f"`sample` must hold maps (height, width) to be drawn, got features of shape {sample.feature_shape}; "
            "`metfa.plot.bars` draws features along one axis"
        )
    known = said_to_be(Image, sample, kind)
    colours = palette_named(palette)
    terms = sample.terms(threshold, alpha=alpha, correction=correction, split=split)
    one = sample.of_input(index)
    warned = cautions(one, 0, flips_from)
    shown, caption = picture_of(one, larger=True) if picture is None else (checked_picture(picture, one), "picture")
    if kind is None and picture is None and np.ndim(one.inputs) == 3 and caption != "no picture":
        caption += "\nread as rows and columns"  # and not as channels and time
    maps = _score_maps(one, confidence_level)
    compared = Compared.of(one, 0)
    scale = common_scale([scores for _, scores in maps if scores is not None], about_0=compared is not None)
    canvas = new_figure(size_of(*sample.feature_shape), "compressed", fig)
    axes = canvas.subplots(2, 3).ravel()
    draw_picture(axes[0], shown, caption)
    for ax, (name, scores) in zip(axes[1:5], maps, strict=True):
        if scores is None:
            draw_note(ax, shown, name, one.too_few_for(confidence_level) or "")
        else:
            draw_scores(ax, shown, scores, name, scale)
    label = "attribution score" if compared is None else f"{compared.score}, {compared.subtraction}"
    draw_colour_bar(canvas, axes, scale, label=label)
    name = f"significance\n{terms.at}, {terms.correction or 'uncorrected'}"
    try:
        decision = one.decide(terms.of_input(index))
        handles = draw_marks(axes[5], decision, shown, name, colours, faint=bool(warned))
        about = "\n".join([decision.question("pixel"), *([] if compared is None else [STATEMENT])])
        canvas.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, title=about)
        warned = [*warned, *nothing_stands_out(decision.nothing, 0, "pixel")]
    except TooFewSamplesError as error:
        draw_note(axes[5], shown, name, str(error))
    if known.has_axes:
        draw_axes(axes, known, sample.feature_shape)
    draw_heading(canvas, title, 100, about=line_of_row(sample, index), cautions=warned)
    return canvas


def _score_maps(sample: AttributionSample, confidence_level: float) -> list[tuple[str, np.ndarray | None]]:
    noun, clean, alone = f"{sample.sample_noun}s", sample.vanilla, "vanilla\none explanation, no noise"
    if clean is None:
        clean, alone = sample.median(), f"median\nof {sample.n_samples:,} {noun}"
    clean = clean[0].astype(np.float64)
    if sample.too_few_for(confidence_level) is not None:
        return [(alone, clean), ("smoothed\n", None), ("lower bound\n", None), ("upper bound\n", None)]
    interval = sample.confidence_interval(confidence_level)
    level = f"of the {'any-time ' * sample.any_time}{percent(interval.confidence_level, 1)} intervals"
    if sample.vanilla is not None:
        alone = f"vanilla\n{percent(outside(sample, interval).mean(), 1)} outside intervals"
    trimmed = f"{n} + {n} left out" if (n := left_out(sample, confidence_level)) else "none left out"
    return [
        (alone, clean),
        (f"smoothed\n{sample.n_samples} {noun}, {trimmed}", sample.smoothed(confidence_level)[0].astype(np.float64)),
        (f"lower bound\n{level}", interval.low[0].astype(np.float64)),
        (f"upper bound\n{level}", interval.high[0].astype(np.float64)),
    ]


def common_scale(maps: list[np.ndarray], *, about_0: bool = False) -> Scale:
    """One scale for several maps; 1 score in 1,000 lies beyond its end. With signs, and `about_0`, symmetric."""
    scores = np.stack(maps)
    high = scale_end(scores)
    cut = float(np.abs(scores).max()) > high
    if about_0 or float(scores.min()) < 0:
        return Scale(-high, high, SIGNED_SCORES, cut)
    return Scale(0.0, high, SCORES, cut)


def scale_end(scores: np.ndarray) -> float:
    """End of the colour scale in figures and reports: 1 score in 1,000 is larger by absolute value. Never 0."""
    strength = np.abs(scores)
    return float(np.quantile(strength, 0.999)) or float(strength.max()) or 1.0


def grey(picture: np.ndarray) -> np.ndarray:
    """The picture in pale grey, (height, width, 3), as a background for colours."""
    brightness = picture @ [0.299, 0.587, 0.114] if picture.ndim == 3 else picture
    return np.repeat(np.clip(0.25 + 0.6 * brightness, 0, 1)[..., None], 3, axis=2)


def _show(ax: Axes, picture: np.ndarray, title: str) -> None:
    height, width = picture.shape[:2]
    stretched = not 1 / 4 <= height / width <= 4  # a strip would be too thin to be seen
    ax.imshow(np.clip(picture, 0, 1), interpolation="nearest", aspect="auto" if stretched else "equal")
    ax.set_axis_off()
    ax.set_title(title, fontsize="medium")


def draw_picture(ax: Axes, picture: np.ndarray, caption: str) -> None:
    """Draw a picture with its caption."""
    _show(ax, picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=2), caption)


def draw_scores(ax: Axes, picture: np.ndarray, scores: np.ndarray, name: str, scale: Scale) -> None:
    """Draw scores over a picture; strong scores cover it, faint ones let it show through. NaN: there is none."""
    from matplotlib import colormaps

    scores = enlarged(scores, picture.shape[:2])
    strength = np.clip(np.abs(scores) / scale.high, 0, 1)
    weight = np.nan_to_num(np.clip(0.35 + 2.5 * strength, 0, 1))[..., None]  # faint scores let the picture through
    coloured = colormaps[scale.colour_map](np.clip((scores - scale.low) / (scale.high - scale.low), 0, 1))[..., :3]
    constant = scores.size > 1 and scores.min() == scores.max()
    title = f"{name.splitlines()[0]}\nconstant: {scores.flat[0]:.3g}" if constant else name
    _show(ax, weight * coloured + (1 - weight) * grey(picture), title)


def draw_colour_bar(fig: Figure, axes: np.ndarray, scale: Scale, label: str = "attribution score", **at: Any) -> None:
    """Draw the scale that several maps share, at the right or where `at` says."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    extend = "neither" if not scale.cut else "both" if scale.low < 0 else "max"
    fig.colorbar(
        ScalarMappable(Normalize(scale.low, scale.high), scale.colour_map),
        ax=list(axes),
        extend=extend,
        label=label,
        **{"fraction": 0.03, "pad": 0.01, "aspect": 40, **at},
    )


def draw_note(ax: Axes, picture: np.ndarray, title: str, text: str, *, small: bool = False) -> None:
    """Draw a text in the place of a map, for a `small` panel in smaller letters."""
    _show(ax, np.full((*picture.shape[:2], 3), 0.95), title)
    wrapped, size = textwrap.fill(text, 24 if small else 30), "x-small" if small else "small"
    ax.text(0.5, 0.5, wrapped, ha="center", va="center", fontsize=size, transform=ax.transAxes, **LITERAL)


def draw_marks(
    ax: Axes, decision: Decision, picture: np.ndarray, name: str, colours: Palette, *, faint: bool
) -> list[Patch]:
    """Draw what is decided about each pixel of the one input; returns the entries of the legend."""
    kinds = colours.of_marks(decision.kinds)
    paint_marks(ax, decision.marks[0], picture, name, kinds, faint=faint)
    return entries_of(decision, kinds, faint=faint)


def entries_of(decision: Decision, kinds: list[tuple[str, int, str]], *, faint: bool) -> list[Patch]:
    """The entries of a legend: each mark with its share of the features of the one input."""
    from matplotlib.patches import Patch

    shares = [(kind, colour, float((decision.marks == mark).mean())) for kind, mark, colour in kinds]
    opacity = FAINT / 0.8 if faint else 1.0
    return [Patch(color=colour, alpha=opacity, label=f"{kind} {percent(share, 1)}") for kind, colour, share in shares]


def paint_marks(
    ax: Axes, marks: np.ndarray, picture: np.ndarray, name: str, kinds: list[tuple[str, int, str]], *, faint: bool
) -> None:
    """Paint marks (height, width) over a picture, in the colours of `Palette.of_marks`; other numbers let it show."""
    from matplotlib.colors import to_rgba

    painted = np.zeros((*marks.shape, 4))
    for _, mark, colour in kinds:
        painted[marks == mark] = to_rgba(colour)
    painted = enlarged(painted, picture.shape[:2])
    weight = (FAINT if faint else 0.8) * painted[..., 3:]
    _show(ax, weight * painted[..., :3] + (1 - weight) * grey(picture), name)


def size_of(height: int, width: int) -> tuple[float, float]:
    """Size of the figure in inches for maps of this shape; very long or flat ones keep a readable size."""
    ratio = min(max(height / width, 0.4), 2.0)
    return 11.6, 3.4 * 2 * ratio + 1.6
