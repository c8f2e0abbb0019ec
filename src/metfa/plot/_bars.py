"""One bar a feature, with the exact interval of its median as error bar."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa import stats
from metfa._base.lazy import needs_extra
from metfa._base.provenance import printable
from metfa._base.validation import positive_int
from metfa.plot._headings import draw_heading
from metfa.plot._one_input import one_input
from metfa.plot._palettes import LITERAL, Palette, palette_named
from metfa.results.decisions import decided
from metfa.results.sample import AttributionSample
from metfa.results.sample_size import TooFewSamplesError
from metfa.sampling.request import checked_names, fitting_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["bars"]

ROW_HEIGHT = 0.34  # inches, room for a name of two lines


@dataclass(frozen=True)
class Scores:
    """What is drawn of one input, a number for each feature; no ends where the samples are too few."""

    heights: np.ndarray
    called: str
    vanilla: np.ndarray
    ends: tuple[np.ndarray, np.ndarray] | None
    interval: str  # what the ends are


@dataclass(frozen=True)
class Decisions:
    """Mark of each feature; name, mark and colour of each kind; the threshold where all features share one."""

    marks: np.ndarray
    kinds: list[tuple[str, int, str]]
    about: str
    threshold: float | None


def bars(
    sample: AttributionSample,
    *,
    index: int = 0,
    feature_names: Sequence[str] | None = None,
    title: str | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
    confidence_level: float = 0.95,
    max_features: int = 20,
    palette: str = "paper",
) -> Figure:
    """Smoothed score of each feature as a bar, its exact interval as error bar, the vanilla score as a diamond.

    Features with the largest scores come first, by absolute value. Signed scores are positive, negative or undecided:
    does the median lie on one side of 0? Scores of one sign are important, unimportant or undecided about a threshold.

    Parameters
    ----------
    sample : AttributionSample
        With features along one axis, such as the columns of a table.
    index : int
        Which input of the batch.
    feature_names : sequence of str, optional
        By default those of the sample, else "feature 0" and so on. Where the input itself has as many numbers, each is
        shown with its name.
    title : str, optional
        Heading; shown as plain text.
    threshold : callable, float or array, optional
        As for `AttributionSample.significance_map`. None: 0 where the scores are signed (`AttributionSample.signed`),
        else the natural break of the input's samples (`metfa.stats.jenks`). Write 0 for signed scores of an explainer
        of yours that happen to be all positive.
    alpha : float, optional
        Level of the decisions, as for `AttributionSample.significance_map`. None: the level at which colours and error
        bars say the same, (1 - `confidence_level`) / 2 a side: a feature is decided just if its interval leaves out
        the threshold. With a correction, 1 - `confidence_level` for all features together.
    correction : {None, "bonferroni", "holm", "bh", "by", "e-bh"}
        Correction for many features; also those that are not shown count.
    split : int, optional
        As for `AttributionSample.significance_map`.
    confidence_level : float
        Level of each interval; the legend names the exact level reached.
    max_features : int
        How many features are shown at most; the figure says how many are not, and how large they are.
    palette : {"paper", "colourblind"}
        Colours: the paper's, or a colour-blind-safe set.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it.

    Raises
    ------
    ValueError
        If the features lie along several axes, or an argument is out of range. Too few samples are no error: the
        figure says so, and the bars are medians where there is no interval.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> explainer = lambda inputs, target: inputs * np.array([3.0, 0.0, -2.0])
    >>> sample = metfa.explain(explainer, np.ones((1, 3)), 0, noise=metfa.noise.Gaussian(0.1), n_samples=20, rng=0)
    >>> figure = metfa.plot.bars(sample, feature_names=["age", "height", "weight"])
    """
    with needs_extra("a figure"):
        from matplotlib.figure import Figure

    if len(sample.feature_shape) != 1:
        raise ValueError(
            f"`sample` must have features along one axis to be drawn as bars, got shape {sample.feature_shape}; "
            "`metfa.plot.figure` draws images"
        )
    colours = palette_named(palette)
    max_features = positive_int(max_features, "max_features")
    names = sample.feature_names if feature_names is None else checked_names(feature_names, None)
    names = fitting_names(names, sample.feature_shape)
    one, given = one_input(sample, index, stats.jenks if threshold is None else threshold)
    if threshold is None and sample.signed:
        given = 0.0
    if alpha is None:
        alpha = round((1 - confidence_level) / (2 if correction is None else 1), 15)
    scores = _scores(one, confidence_level)
    notes = [] if scores.ends else [f"no error bars: {one.too_few_for(confidence_level)}"]
    try:
        decisions = _decisions(one, given, alpha, correction, split, colours)
    except TooFewSamplesError as error:
        decisions, notes = None, [*notes, str(error)]
    order = np.argsort(-np.abs(scores.heights), kind="stable")
    shown, rest = order[:max_features], order[max_features:]
    if rest.size:
        notes.append(_not_shown(scores, decisions, rest))
    fig = Figure(figsize=(8.5, ROW_HEIGHT * len(shown) + 1.9 + 0.2 * len(notes)), layout="constrained")
    ax = fig.subplots()
    handles = _draw_bars(ax, scores, decisions, shown, colours)
    _label_features(ax, one, names, shown)
    below = [f"attribution score: {scores.called}", *(textwrap.fill(note, 105) for note in notes)]
    ax.set_xlabel("\n".join(below), fontsize="small")
    fig.legend(
        handles=handles,
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize="small",
        title=None if decisions is None else decisions.about,
        title_fontsize="small",
    )
    draw_heading(fig, title)
    return fig


def _scores(sample: AttributionSample, confidence_level: float) -> Scores:
    vanilla = sample.vanilla[0].astype(np.float64)
    n = sample.n_samples
    if sample.too_few_for(confidence_level) is not None:
        called = "the only sample" if n == 1 else f"median of {n} samples"
        return Scores(sample.median()[0].astype(np.float64), called, vanilla, None, "")
    interval = sample.confidence_interval(confidence_level)
    ends = interval.low[0].astype(np.float64), interval.high[0].astype(np.float64)
    smoothed = sample.smoothed(confidence_level)[0].astype(np.float64)
    told = f"{sample.interval_kind} {interval.confidence_level:.1%} interval of the median"
    return Scores(smoothed, f"smoothed over {n} samples", vanilla, ends, told)


def _decisions(
    sample: AttributionSample,
    threshold: Any,
    alpha: float,
    correction: str | None,
    split: int | None,
    colours: Palette,
) -> Decisions:
    marks, _, heights, _ = decided(sample, threshold, alpha, correction, split)
    common = float(heights.flat[0]) if heights.size and (heights == heights.flat[0]).all() else None
    if common == 0:
        kinds = [
            ("positive", 1, colours.positive),
            ("undecided", 0, colours.no_sign),
            ("negative", -1, colours.negative),
        ]
    else:
        kinds = [
            ("important", 1, colours.important),
            ("undecided", 0, colours.undecided),
            ("unimportant", -1, colours.unimportant),
        ]
    compared = "a threshold of its own" if common is None else f"{common:.3g}"
    level = f"alpha {alpha:g} a side, uncorrected" if correction is None else f"alpha {alpha:g}, {correction}"
    features = "1 feature" if marks.size == 1 else f"{marks.size} features"
    about = f"is the median of a feature above or below {compared}? ({level}; {features})"
    if np.isnan(heights).all():
        about = "no threshold exists: all scores are equal"
    return Decisions(marks[0], kinds, about, common)


def _not_shown(scores: Scores, decisions: Decisions | None, rest: np.ndarray) -> str:
    largest = np.abs(scores.heights[rest]).max()
    decided = ""
    if decisions is not None:
        counts = [(name, int((decisions.marks[rest] == mark).sum())) for name, mark, _ in decisions.kinds]
        decided = "; " + ", ".join(f"{count} {name}" for name, count in counts if count)
    features = "1 feature, its score" if rest.size == 1 else f"{rest.size} features, their scores"
    return f"not shown: {features} at most {largest:.3g} in size{decided}"


def _draw_bars(ax: Axes, scores: Scores, decisions: Decisions | None, shown: np.ndarray, colours: Palette) -> list[Any]:
    """Bars from the top downwards; returns what the legend explains."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    places = np.arange(len(shown))
    painted = np.full(len(shown), colours.no_sign, dtype=object)
    handles: list[Any] = []
    if decisions is not None:
        for name, mark, colour in decisions.kinds:
            painted[decisions.marks[shown] == mark] = colour
            handles.append(Patch(color=colour, label=f"{name}: {(decisions.marks == mark).sum()}"))
    ax.barh(places, scores.heights[shown], color=list(painted), height=0.72, zorder=2)
    ax.axvline(0, color="black", linewidth=0.8, zorder=3)
    if decisions is not None and decisions.threshold and np.isfinite(decisions.threshold):
        ax.axvline(decisions.threshold, color="black", linestyle=":", zorder=3)
        handles.append(Line2D([], [], color="black", linestyle=":", label=f"threshold {decisions.threshold:.3g}"))
    if scores.ends is not None:
        low, high = (end[shown] for end in scores.ends)
        for width, colour in ((4.0, "white"), (1.4, "black")):  # a light edge, to be seen on dark bars too
            ax.hlines(places, low, high, color=colour, linewidth=width, zorder=4)
            for end in (low, high):
                ax.plot(end, places, "|", color=colour, markersize=8, markeredgewidth=width, zorder=4)
        line: dict[str, Any] = {"color": "black", "linewidth": 1.4, "marker": "|", "markersize": 8}
        handles.append(Line2D([], [], label=scores.interval, **line))
    diamond: dict[str, Any] = {"marker": "D", "markersize": 4.5, "color": "black", "markerfacecolor": "white"}
    ax.plot(scores.vanilla[shown], places, linestyle="none", zorder=5, **diamond)
    handles.append(Line2D([], [], linestyle="none", label="vanilla: one explanation, no noise", **diamond))
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return handles


def _label_features(ax: Axes, sample: AttributionSample, names: tuple[str, ...] | None, shown: np.ndarray) -> None:
    inputs = sample.inputs
    has_values = isinstance(inputs, np.ndarray) and inputs.shape[1:] == sample.feature_shape
    labels = []
    for feature in shown:
        name = f"feature {feature}" if names is None else printable(names[feature])
        label = "\n".join(textwrap.wrap(name, 36, max_lines=2, placeholder=" …"))
        labels.append(f"{label} = {_number(inputs[0, feature])}" if has_values else label)
    ax.set_yticks(np.arange(len(shown)), labels=labels, fontsize="small", **LITERAL)
    ax.tick_params(axis="y", length=0)


def _number(value: Any) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"
