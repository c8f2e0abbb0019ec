"""Bars: one for each feature, with the exact interval of its median as error bar."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE, Palette, palette_named
from metfa._base.percents import counted
from metfa._base.provenance import printable
from metfa._base.validation import check_kind, positive_int
from metfa.plot._canvas import new_axes, new_figure, room_of
from metfa.plot._headings import LITERAL, draw_heading, draw_legend
from metfa.plot._parts import draw_parts
from metfa.plot.images import FAINT
from metfa.results.cautions import FLIPS_FROM, cautions, line_of_row, nothing_stands_out
from metfa.results.compared import STATEMENT, Compared
from metfa.results.decisions import Decision, TooFewSamplesError
from metfa.results.labels import value_texts
from metfa.results.sample import AttributionSample
from metfa.results.scores import Scores, why_no_ends
from metfa.results.terms import Terms
from metfa.sampling.request import checked_names, fitting_names
from metfa.text.answers.answered import Answered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from metfa.plot.settings import OnAxes

__all__ = ["ROOM", "bars", "draw_bars", "found", "label_of", "not_shown", "score_name"]

CONTRADICTED = "#e0201b"
ROW_HEIGHT = 0.34  # inches, room for a name of two lines
ROOM, WIDER = 120, 180  # small letters beside each other: of bars, and of those with both parts of a comparison
LONGEST, LONGEST_ANSWER = 24, 120  # letters, of a value and of an answer


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
    palette: str = DEFAULT_PALETTE,
    flips_from: float = FLIPS_FROM,
    ax: OnAxes | None = None,
) -> OnAxes:
    """Draw each feature: its smoothed score as a bar, the exact interval as error bar, the vanilla score as a diamond.

    A red diamond lies outside its interval by more than rounding: the explanation without noise contradicts those under
    the noise.

    Features with the largest absolute scores come first. Signed scores are positive, negative or undecided: does the
    median lie on one side of 0? Scores of one sign are important, unimportant or undecided about a threshold. Colours
    are decided at alpha, but error bars are intervals at `confidence_level`, so the two may differ at the threshold:
    with the defaults each side is tested at 0.05, and an interval misses with probability 0.025 on each side. With
    ``alpha=0.025`` a feature is decided exactly if its interval excludes the threshold.

    Parameters
    ----------
    sample : AttributionSample
        With features along one axis, such as the columns of a table.
    index : int
        Which input of the batch.
    feature_names : sequence of str, optional
        By default those of the sample, else "feature 0" and so on. If the input itself has one number for each feature,
        it is shown with the name.
    title : str, optional
        Heading; shown as plain text. Below it stand the input's place in the batch and the class that was explained.
    threshold, alpha, correction, split
        As for `AttributionSample.terms`. Write the threshold 0 if your explainer gives signed scores that happen to be
        all positive. A correction also counts the features that are not shown.
    confidence_level : float
        Level of each interval; the legend names the exact level reached.
    max_features : int
        How many features are shown at most; the figure says how many are left out, and how large these are.
    palette : {"colourblind", "paper"}
        Colours of the marks: a set for all colour visions and for grey prints, or the paper's.
    flips_from : float
        Share of noisy inputs with another prediction, from which on the title says so and the marks are faint.
    ax : matplotlib.axes.Axes, optional
        Empty axes to draw into, which are returned: the heading is their title, and the legend stands below them. Of a
        comparison the differences alone are drawn there.

    Returns
    -------
    matplotlib.figure.Figure, or `ax`
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
        import matplotlib.figure  # noqa: F401

    check_kind(sample, "sample", AttributionSample, "`metfa.explain`")
    if len(sample.feature_shape) != 1:
        raise ValueError(
            f"`sample` must have features along one axis to be drawn as bars, got shape {sample.feature_shape}; "
            "`metfa.plot.figure` draws images"
        )
    colours = palette_named(palette)
    max_features = positive_int(max_features, "max_features")
    names = sample.feature_names if feature_names is None else checked_names(feature_names, None)
    names = fitting_names(names, sample.feature_shape)
    terms = sample.terms(threshold, alpha=alpha, correction=correction, split=split)
    one = sample.of_input(index)
    warned = cautions(one, 0, flips_from)
    scores, decision, notes = found(one, terms.of_input(index), confidence_level)
    order = np.argsort(-np.abs(scores.values), kind="stable")
    shown, rest = order[:max_features], order[max_features:]
    if rest.size:
        notes.append(not_shown(scores, decision, rest, sample.noun))
    compared = sample.pair is not None
    about = f"{score_name(one)}: {scores.called}"
    below, said = notes, [] if decision is None else [decision.question(sample.noun)]
    if compared:
        below, said, about = [], [*said, *notes, STATEMENT], textwrap.fill(about, 60)
    said = [line for text in said for line in textwrap.wrap(text, 150 if compared else ROOM)]
    height = ROW_HEIGHT * len(shown) + 1.9 + 0.2 * (len(notes) + len(said) * compared)
    both = compared and ax is None
    if both:
        canvas = new_figure((11.5, height), "constrained")
        of_parts, panel = canvas.subplots(1, 2, sharey=True)
    else:
        canvas, of_parts = new_axes((8.5, height), ax, named="y")
        panel = of_parts
    handles = draw_bars(panel, scores, decision, shown, colours, faint=bool(warned))
    if both:
        handles += draw_parts(of_parts, one, shown, confidence_level)
        of_parts.set_xlabel(textwrap.fill(score_name(one, of_parts=True), 60), fontsize="small")
    _label_features(of_parts, one, names, shown)
    lines = [textwrap.fill(line, room_of(canvas, ROOM)) for line in about.splitlines()]
    lines += [textwrap.fill(note, room_of(canvas, 100)) for note in below]
    panel.set_xlabel("\n".join(lines), fontsize="small")
    draw_legend(canvas, handles, said, room=WIDER if compared else ROOM, width=150 if compared else ROOM)
    flat = [] if decision is None else nothing_stands_out(decision.nothing, 0, sample.noun)
    draw_heading(canvas, title, about=_what(sample, index), cautions=[*warned, *flat])
    return canvas


def _what(sample: AttributionSample, index: int) -> str | None:
    """Which input it is, and what was explained; of an answer what it says."""
    answered = Answered.of(sample)
    if answered is None:
        return line_of_row(sample, index)
    n, text = len(answered.answers), " ".join(answered.answers[index].split())
    said = text if len(text) <= LONGEST_ANSWER else f"{text[: LONGEST_ANSWER - 1]}…"
    return f"“{said}”" if n == 1 else f"{answered.noun} {index} of {n}: “{said}”"


def found(
    sample: AttributionSample, terms: Terms, confidence_level: float, ends: str | None = "error bars"
) -> tuple[Scores, Decision | None, list[str]]:
    """Scores of one input, what is decided about them unless there are too few samples, and what a reader must know.

    `ends`: as what the figure shows the intervals; None if it does not.
    """
    scores = Scores.of(sample, confidence_level)
    notes = [] if scores.ends else [f"no {ends or 'intervals'}: {why_no_ends(sample, confidence_level)}"]
    try:
        decision = sample.decide(terms)
    except TooFewSamplesError as error:
        return scores, None, [*notes, str(error)]
    if ends is not None and scores.ends is not None and not terms.of_effects:
        notes.append(f"{ends} have a level of their own, so they may differ from the colours at the threshold")
    return scores, decision, notes


def score_name(sample: AttributionSample, *, of_parts: bool = False) -> str:
    """What a score is, or what a difference is; with `of_parts` what a score of either part of a comparison is."""
    compared = Compared.of(sample, 0)
    if compared is None:
        return sample.score_name
    name = compared.score if sample.regions is None else sample.score_name
    if sample.regions is not None and compared.scale != "raw":
        name += f" ({compared.score})"
    return f"{name}, {' and '.join(compared.names)}" if of_parts else f"{name}, {compared.subtraction}"


def not_shown(scores: Scores, decision: Decision | None, rest: np.ndarray, noun: str) -> str:
    """How many features are not shown, how large their scores are, and what is decided about them."""
    largest = np.abs(scores.values.ravel()[rest]).max()
    decided = ""
    if decision is not None:
        counts = [(decision.kinds[mark], int((decision.marks[0].ravel()[rest] == mark).sum())) for mark in (1, 0, -1)]
        decided = "; " + ", ".join(f"{count} {name}" for name, count in counts if count)
    whose = f"its {scores.quantity}" if rest.size == 1 else f"their {scores.quantity}s"
    return f"not shown: {counted(rest.size, noun)}, {whose} at most {largest:.3g} in size{decided}"


def draw_bars(
    ax: Axes, scores: Scores, decision: Decision | None, shown: np.ndarray, colours: Palette, *, faint: bool
) -> list[Any]:
    """Draw bars from the top downwards; returns the entries of the legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    places = np.arange(len(shown))
    painted = np.full(len(shown), colours.no_sign, dtype=object)
    handles: list[Any] = []
    opacity = FAINT if faint else 1.0
    if decision is not None:
        for name, mark, colour in colours.of_marks(decision.kinds):
            painted[decision.marks[0, shown] == mark] = colour
            handles.append(Patch(color=colour, alpha=opacity, label=f"{name}: {(decision.marks == mark).sum()}"))
    ax.barh(places, scores.values[shown], color=list(painted), alpha=opacity, height=0.72, zorder=2)
    ax.axvline(0, color="black", linewidth=0.8, zorder=3)
    if decision is not None and decision.threshold and np.isfinite(decision.threshold):
        ax.axvline(decision.threshold, color="black", linestyle=":", zorder=3)
        handles.append(Line2D([], [], color="black", linestyle=":", label=f"threshold {decision.threshold:.3g}"))
    if scores.ends is not None:
        low, high = (end[shown] for end in scores.ends)
        for width, colour in ((4.0, "white"), (1.4, "black")):  # a light edge, to be seen on dark bars too
            ax.hlines(places, low, high, color=colour, linewidth=width, zorder=4)
            for end in (low, high):
                ax.plot(end, places, "|", color=colour, markersize=8, markeredgewidth=width, zorder=4)
        line: dict[str, Any] = {"color": "black", "linewidth": 1.4, "marker": "|", "markersize": 8}
        handles.append(Line2D([], [], label=f"{scores.intervals(1)} of the {scores.median}", **line))
    diamond: dict[str, Any] = {"marker": "D", "markersize": 4.5, "color": "black", "markerfacecolor": "white"}
    diamond |= {"clip_on": False}  # at 0 it may lie on the edge
    if scores.vanilla is None:
        beyond = np.zeros(len(shown), bool)
    else:
        beyond = scores.outside[shown]
        ax.plot(scores.vanilla[shown], places, linestyle="none", zorder=5, **diamond)
        handles.append(Line2D([], [], linestyle="none", label="vanilla: one explanation, no noise", **diamond))
    if scores.vanilla is not None and scores.outside.any():
        diamond["markerfacecolor"] = CONTRADICTED
        ax.plot(scores.vanilla[shown][beyond], places[beyond], linestyle="none", zorder=5, **diamond)
        count = f"{scores.outside.sum():,} of {scores.outside.size:,}"
        handles.append(Line2D([], [], linestyle="none", label=f"vanilla outside its interval: {count}", **diamond))
    if not scores.values.any() and (scores.vanilla is None or not scores.vanilla.any()):
        ax.set_xlim(-1, 1)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return handles


def _label_features(ax: Axes, sample: AttributionSample, names: tuple[str, ...] | None, shown: np.ndarray) -> None:
    inputs = sample.inputs
    single = sample.noun == "feature" and isinstance(inputs, np.ndarray) and inputs.dtype.kind in "biuf"
    has_values = single and inputs.shape[1:] == sample.feature_shape
    texts = value_texts(sample) or [None] * sample.n_features
    labels = []
    for feature in shown:
        label = label_of(names, feature)
        if has_values:
            text = texts[feature]
            label = f"{label} = {_number(inputs[0, feature]) if text is None else shortened(text)}"
        labels.append(label)
    ax.set_yticks(np.arange(len(shown)), labels=labels, fontsize="small", **LITERAL)
    ax.tick_params(axis="y", length=0)


def shortened(text: str) -> str:
    """A label on one line."""
    return textwrap.shorten(printable(text), LONGEST, placeholder=" …") if len(text) > LONGEST else printable(text)


def label_of(names: Sequence[str] | None, feature: int, width: int = 36) -> str:
    """A feature's name in at most two lines."""
    name = f"feature {feature}" if names is None else printable(names[feature])
    return "\n".join(textwrap.wrap(name, width, max_lines=2, placeholder=" …"))


def _number(value: Any) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"
