"""The figure of a comparison: both maps on one colour scale, their difference, and where it grew or shrank."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE, Palette, palette_named
from metfa._base.percents import percent
from metfa._base.validation import check_kind, check_number, shown
from metfa.plot._canvas import new_figure
from metfa.plot._headings import columns_that_fit, draw_heading
from metfa.plot._outlines import enlarged, fine, outline
from metfa.plot._region_map import draw_lines
from metfa.plot.images import (
    FAINT,
    Scale,
    common_scale,
    draw_colour_bar,
    draw_note,
    draw_picture,
    draw_scores,
    grey,
    size_of,
)
from metfa.plot.pictures import checked_picture, picture_of
from metfa.results.cautions import FLIPS_FROM, about_outside, cautions, line_of_row, nothing_stands_out
from metfa.results.compared import Compared
from metfa.results.decisions import Decision, TooFewSamplesError
from metfa.results.sample import AttributionSample
from metfa.results.scores import Scores
from metfa.results.terms import Terms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from metfa.plot.settings import InFigure

__all__ = ["comparison"]

PLAIN = "#d9d9d9"  # in the legend, of what has no mark
THICK = 0.2  # inches, of a colour bar and its distance
LINE = 0.15  # inches of a small line
MANY = 60  # from so many areas on, their outlines would hide them
WIDE, ROOM = 185, 180  # characters of a line below the panels, and of the entries of a legend beside each other


def comparison(
    sample: AttributionSample,
    *,
    index: int = 0,
    picture: Any = None,
    title: str | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
    confidence_level: float = 0.95,
    palette: str = DEFAULT_PALETTE,
    flips_from: float = FLIPS_FROM,
    delta: float | None = None,
    fig: InFigure | None = None,
) -> InFigure:
    """Draw both smoothed maps of a comparison on one colour scale, their difference, and where it grew or shrank.

    The difference is not that of the two maps above it: it is smoothed over the differences in each noisy copy, and its
    colours are symmetric about 0. Beside it stands the end of each interval that is nearer to 0, or 0 where the
    interval holds 0: at least so large is the median difference. Where the inputs were changed too, the second picture
    takes the place of these ends. Pixels that are not shown to differ are left as they are in the picture.

    Parameters
    ----------
    sample : AttributionSample
        Differences (`metfa.compare`) of maps (height, width).
    index : int
        Which input of the batch.
    picture : ndarray, optional
        Picture below the maps, (height, width) or (height, width, 3) in [0, 1]; by default the input itself. It may be
        larger than the maps; each of their cells then covers a part of it. Where the inputs were changed, a list of
        two, before and after.
    title : str, optional
        Heading; shown as plain text. Below it stand the input's place in the batch and the classes that were explained.
    threshold, alpha, correction, split
        As for `AttributionSample.terms`; the threshold is 0.
    confidence_level : float
        Level of each interval.
    palette : {"colourblind", "paper"}
        Colours of the marks: a set for all colour visions and for grey prints, or the paper's.
    flips_from : float
        Share of noisy inputs with another prediction, from which on the title says so and the marks are faint.
    delta : float, optional
        Where the median difference is shown to lie within plus and minus this number (`AttributionSample.unchanged`),
        the marks are dotted.
    fig : matplotlib.figure.Figure or SubFigure, optional
        An empty figure with ``layout="constrained"``, or a subfigure of one, to draw into: it is returned.

    Returns
    -------
    matplotlib.figure.Figure, or `fig`
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it.

    Raises
    ------
    TypeError, ValueError
        If the sample holds no differences of images, or an argument is out of range. Too few samples are no error: the
        panels say so, and the maps are medians.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> inputs = np.random.default_rng(0).random((1, 8, 8))
    >>> settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 20, "rng": 0}
    >>> before = metfa.explain(lambda x, target: x**2, inputs, 0, **settings)
    >>> after = metfa.explain(lambda x, target: x, inputs, 0, **settings)
    >>> figure = metfa.plot.comparison(metfa.compare(before, after), correction="bh", delta=0.1)
    """
    with needs_extra("a figure"):
        import matplotlib.figure  # noqa: F401

    check_kind(sample, "sample", AttributionSample, "`metfa.compare`")
    if len(sample.feature_shape) != 2 or sample.regions is not None:
        raise ValueError(
            f"`sample` must hold differences of maps (height, width) to be drawn, got {sample.noun}s of shape "
            f"{sample.feature_shape}: compare heat maps (`metfa.explainers.heatmap`), or write `sample.plot()` for "
            "features along one axis and for regions"
        )
    colours = palette_named(palette)
    delta = None if delta is None else check_number(delta, "delta", above=0)
    terms = sample.terms(threshold, alpha=alpha, correction=correction, split=split)
    one = sample.of_input(index)
    about, pair = _parts_of(one)
    pictures = _pictures(one, about, picture)
    below = pictures[-1][0]
    warned = cautions(one, 0, flips_from)
    parts, difference = [Scores.of(part, confidence_level) for part in pair], Scores.of(one, confidence_level)
    canvas = new_figure((size_of(1, 1)[0], 1), "compressed", fig)
    axes = canvas.subplots(2, 3)
    for ax, (drawn, caption) in zip(axes[:, 0], pictures, strict=False):
        draw_picture(ax, drawn, caption)
    scale = common_scale([scores.values for scores in parts])
    for ax, name, scores, (drawn, _) in zip(axes[0, 1:], about.names, parts, (pictures[0], pictures[-1]), strict=True):
        draw_scores(ax, drawn, scores.values, f"{_short(name)}, {_called(scores)}", scale)
    _draw_scale(canvas, axes[0, 1:], sample.feature_shape, scale, about.score)
    signed, maps = common_scale([difference.values], about_0=True), axes[1, :2] if len(pictures) == 1 else axes[1, 1:2]
    draw_scores(maps[0], below, difference.values, f"difference, {_called(difference)}", signed)
    if len(maps) > 1:
        _draw_ends(maps[1], below, difference, one.too_few_for(confidence_level), signed)
    _draw_scale(
        canvas, maps, sample.feature_shape, signed, f"difference, {_short(about.after)} minus {_short(about.before)}"
    )
    name, handles, said = f"\n{terms.at}, {terms.correction or 'uncorrected'}", [], []
    try:
        decision = one.decide(terms.of_input(index))
        handles = _draw_marks(axes[1, 2], decision, fine(below), name, colours, faint=bool(warned))
        said.append(decision.question("pixel"))
        warned = [*warned, *nothing_stands_out(decision.nothing, 0, "pixel")]
    except TooFewSamplesError as error:
        draw_note(axes[1, 2], below, f"significance{name}", str(error))
    if delta is not None:
        try:
            handles += _draw_within(axes[1, 2], one, fine(below), delta, terms)
        except TooFewSamplesError as error:
            said.append(f"within \N{PLUS-MINUS SIGN}{delta:g}: {error}")
    if difference.ends is not None:
        said.append(about_outside(int(difference.outside.sum()), difference.outside.size, "pixel", "difference"))
    said = [textwrap.fill(line, WIDE) for line in (*said, f"Difference: {about.about}")]
    look: dict[str, Any] = {
        "ncols": columns_that_fit(handles, ROOM, 4),
        "frameon": False,
        "fontsize": "small",
        "title_fontsize": "small",
    }
    canvas.legend(handles=handles, loc="outside lower center", title="\n".join(said), **look)
    lines = sum(text.count("\n") + 1 for text in said) + len(handles) // look["ncols"]
    if fig is None:
        canvas.set_figheight(_height(*sample.feature_shape) + LINE * lines + 0.2 * (1 + len(warned) + bool(title)))
    draw_heading(canvas, title, 100, about=line_of_row(sample, index), cautions=warned)
    return canvas


def _parts_of(sample: AttributionSample) -> tuple[Compared, tuple[AttributionSample, AttributionSample]]:
    """What a comparison of one input is of; raises for samples that are none."""
    about = Compared.of(sample, 0)
    if about is None or sample.pair is None:
        raise ValueError("`sample` must hold differences, got scores: write `metfa.compare(before, after)`")
    return about, sample.pair


def _pictures(sample: AttributionSample, about: Compared, given: Any) -> list[tuple[np.ndarray, str]]:
    """The picture of the one input with its caption, or where the input was changed, two."""
    if not about.changed:
        return [picture_of(sample, larger=True) if given is None else (checked_picture(given, sample), "picture")]
    names = [f"picture, {_short(name)}" for name in about.names]
    if given is None:
        found = [picture_of(part, larger=True) for part in sample.pair or ()]
        return [(one, f"{caption}, {_short(name)}") for (one, caption), name in zip(found, about.names, strict=True)]
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ValueError(
            "`picture` must be a list of two pictures, before and after, as the inputs were changed, got "
            f"{shown(given)}"
        )
    return [(checked_picture(one, sample), name) for one, name in zip(given, names, strict=True)]


def _called(scores: Scores) -> str:
    """What a map shows, in two lines: such as "smoothed" and how."""
    how, _, over = scores.called.replace("median of", "median over").partition(" over ")
    return f"{how}\n{over}"


def _short(name: str) -> str:
    return textwrap.shorten(name, 28, placeholder=" …") if " " in name else name[:28]


def _height(height: int, width: int) -> float:
    """Inches for the panels with their titles and colour bars; so few that they need not the whole width."""
    _, down = size_of(height, width)
    return down + 0.4


def _draw_scale(fig: Figure, axes: Any, shape: tuple[int, ...], scale: Scale, label: str) -> None:
    _, down = size_of(*shape)
    thin = THICK / (down / 2)
    draw_colour_bar(fig, axes, scale, label=label, location="bottom", fraction=thin, aspect=24 * len(axes))


def _draw_ends(ax: Axes, picture: np.ndarray, difference: Scores, few: str | None, scale: Scale) -> None:
    """Draw how large each median difference is at least: the end of its interval that is nearer to 0, or 0."""
    name = "differs by at least\n"
    if difference.ends is None:
        draw_note(ax, picture, name, few or "")
        return
    low, high = difference.ends
    nearest = np.where(low > 0, low, np.where(high < 0, high, 0.0))
    draw_scores(ax, picture, nearest, f"{name}by its {difference.intervals(1)}", scale)


def _draw_marks(
    ax: Axes, decision: Decision, picture: np.ndarray, name: str, colours: Palette, *, faint: bool
) -> list[Any]:
    """Draw where it grew and where it shrank; the picture is left as it is elsewhere. Returns the legend's entries."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    marks, handles, about_0 = decision.marks[0], [], decision.threshold == 0
    painted = 0.3 + 0.5 * grey(picture)  # so that the darkest and the lightest parts differ from the marks
    weight = FAINT if faint else 0.8
    for kind, mark, colour in colours.of_marks(decision.kinds):
        share = percent((marks == mark).mean(), 1)
        if mark == 0:
            label = f"{kind}{', not shown to differ' * about_0} {share}"
            handles.append(Patch(facecolor=PLAIN, edgecolor="#999999", label=label))
            continue
        handles.append(Patch(color=colour, alpha=weight / 0.8, label=f"{kind} {share}"))
        here = enlarged(marks == mark, picture.shape[:2])
        painted[here] = weight * np.array(to_rgb(colour)) + (1 - weight) * painted[here]
    draw_picture(ax, painted, ("shown to differ" if about_0 else "significance") + name)
    for mark in (1, -1):
        here = enlarged(marks == mark, picture.shape[:2])
        lines = outline(here) if here.any() else []
        if len(lines) <= MANY:
            draw_lines(ax, lines, "black" if mark > 0 else "white", 0.8, faint=faint)
    return handles


def _draw_within(ax: Axes, sample: AttributionSample, picture: np.ndarray, delta: float, terms: Terms) -> list[Any]:
    """Dot where the median difference is shown to lie within plus and minus delta; returns the legend's entry."""
    from matplotlib.patches import Patch

    within = sample.unchanged(delta, alpha=terms.alpha, correction=terms.correction or "none")[0]
    if within.any():
        height, width = picture.shape[:2]
        ax.contourf(enlarged(within, (height, width)), levels=[0.5, 1.5], colors="none", hatches=["..."])
    said = f"shown to lie within \u00b1{delta:g} {percent(within.mean(), 1)}"
    return [Patch(facecolor="white", edgecolor="#555555", hatch="...", label=said)]
