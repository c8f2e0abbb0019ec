"""The figure of a series: its signal with the significant steps shaded, and below it the score with its interval."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE, palette_named
from metfa._base.percents import counted, percent
from metfa._base.validation import check_kind
from metfa.plot._bars import found, not_shown, score_name
from metfa.plot._canvas import new_figure
from metfa.plot._headings import LITERAL, draw_heading, draw_legend
from metfa.plot._series_panels import Look, draw_both, draw_marks, draw_scores_along, draw_signals, name_panel
from metfa.plot.images import FAINT
from metfa.plot.kinds import Series
from metfa.plot.readings import place_noun, said_to_be
from metfa.plot.traces import OVERLAPPING, Traces, is_overlapping
from metfa.results.cautions import FLIPS_FROM, about_outside, cautions, line_of_row, nothing_stands_out
from metfa.results.compared import STATEMENT
from metfa.results.decisions import Decision
from metfa.results.sample import AttributionSample
from metfa.results.scores import Scores

if TYPE_CHECKING:
    from metfa.plot.settings import InFigure

__all__ = ["series"]

MOST_CHANNELS = 16
WIDTH = 12.0  # inches


def series(
    sample: AttributionSample,
    kind: Series | None = None,
    *,
    index: int = 0,
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
    """Draw the signal of a series with its significant steps shaded, and its score with the interval of its median.

    Each channel has a panel with a scale of its own. Steps that are decided are shaded, and a strip below them has the
    full colour of the mark; undecided ones stay plain. Where each channel has scores of its own, they stand below it;
    else one panel below all channels has them. At most 16 channels are drawn, those with the largest scores; the figure
    says how many are left out.

    Parameters
    ----------
    sample : AttributionSample
        With maps (time,), or (channels, time) for scores of each channel; or with windows of such maps as features
        (`metfa.regions.windows`), which are shaded as a whole.
    kind : Series, optional
        Times and names of the channels.
    index : int
        Which input of the batch.
    title : str, optional
        Heading; shown as plain text. Below it stand the input's place in the batch and the class that was explained.
    threshold, alpha, correction, split
        As for `AttributionSample.terms`.
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
        If the maps are no series, or an argument is out of range. Too few samples are no error: the figure says so, and
        draws medians without intervals.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> wave = np.sin(np.arange(200) / 10)[None]
    >>> noise = metfa.noise.Gaussian(0.1)
    >>> sample = metfa.explain(lambda x, target: np.abs(x), wave, 0, noise=noise, n_samples=20, rng=0)
    >>> figure = metfa.plot.series(sample, metfa.plot.Series(sampling_rate=100))
    """
    with needs_extra("a figure"):
        import matplotlib.figure  # noqa: F401
        from matplotlib.layout_engine import ConstrainedLayoutEngine

    check_kind(sample, "sample", AttributionSample, "`metfa.explain`")
    known = said_to_be(Series, sample, kind)
    colours = palette_named(palette)
    terms = sample.terms(threshold, alpha=alpha, correction=correction, split=split)
    one = sample.of_input(index)
    warned = cautions(one, 0, flips_from)
    traces = Traces.of(one, known)
    scores, decision, notes = found(one, terms.of_input(index), confidence_level, "interval bands")
    look = Look([] if decision is None else colours.of_marks(decision.kinds), bool(warned))
    marks = np.zeros(traces.cells.shape, np.int8) if decision is None else np.append(decision.marks[0], 0)[traces.cells]
    shown = _shown(traces, scores)
    heights = _heights(traces, len(shown), parts=one.pair is not None)
    canvas = new_figure((WIDTH, sum(heights) + 2.2), ConstrainedLayoutEngine(h_pad=0.02, hspace=0.01), fig)
    axes = list(np.atleast_1d(canvas.subplots(len(heights), 1, sharex=True, gridspec_kw={"height_ratios": heights})))
    panels = iter(axes)
    handles: list[Any] = []
    lines: list[Any] = []
    of_scores: list[Any] = []
    for channel in shown:
        row = channel if traces.per_channel else 0
        if traces.signals:
            ax = next(panels)
            draw_marks(ax, traces, marks[row], look)
            handles = draw_signals(ax, traces, channel, one)
            name_panel(ax, traces.names[channel])
        if traces.per_channel:
            ax = next(panels)
            draw_marks(ax, traces, marks[row], look)
            lines = draw_scores_along(ax, traces, scores, row, decision and decision.threshold)
            of_scores.append(ax)
            name_panel(ax, "score" if traces.signals else traces.names[channel], faint=bool(traces.signals))
    if not traces.per_channel:
        if one.pair is not None:
            handles = [*handles, *draw_both(next(panels), traces, one, confidence_level)]
        ax = next(panels)
        draw_marks(ax, traces, marks[0], look)
        lines = draw_scores_along(ax, traces, scores, 0, decision and decision.threshold)
        ax.set_ylabel(textwrap.fill(score_name(one), 24), fontsize="small", **LITERAL)
    limits = [ax.get_ylim() for ax in of_scores]
    for ax in of_scores:  # one scale, as the threshold is one for all
        ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
    canvas.align_ylabels(axes)
    axes[-1].set_xlabel(traces.label, **LITERAL)
    axes[-1].set_xlim(traces.edges[0], traces.edges[-1])
    noun = place_noun(one, known)
    if shown and len(shown) < len(traces.names):
        notes.append(_left_out(traces, scores, decision, shown, noun))
    if scores.vanilla is not None and scores.ends is not None:
        notes.append(about_outside(int(scores.outside.sum()), scores.outside.size, noun, scores.quantity))
    if is_overlapping(one):
        notes.append(OVERLAPPING)
    if (traces.cells < 0).any():
        notes.append("steps in no region are plain too, and have no score")
    said = [*([] if decision is None else [decision.question(noun)]), *notes, *[STATEMENT][: one.pair is not None]]
    handles = [*_marks_in_words(decision, look), *handles, *lines]
    draw_legend(canvas, handles, said, room=160, width=150, most=4)
    flat = [] if decision is None else nothing_stands_out(decision.nothing, 0, noun)
    draw_heading(canvas, title, 100, about=line_of_row(sample, index), cautions=[*warned, *flat])
    return canvas


def _shown(traces: Traces, scores: Scores) -> list[int]:
    """Channels that are drawn, in their order: those with the largest scores of their own, else the first ones."""
    if not traces.per_channel:
        return list(range(len(traces.names)))[:MOST_CHANNELS] if traces.signals else []
    strongest = np.append(np.abs(scores.values), 0.0)[traces.cells].max(axis=1)
    best = np.argsort(-strongest, kind="stable")[:MOST_CHANNELS]
    return sorted(best.tolist())


def _left_out(traces: Traces, scores: Scores, decision: Decision | None, shown: list[int], noun: str) -> str:
    """Which channels are not drawn, and what is decided about them where they have scores of their own."""
    if not traces.per_channel:
        return f"not shown: the last {counted(len(traces.names) - len(shown), 'channel')}"
    rest = np.unique(np.delete(traces.cells, shown, axis=0))
    rest = rest[~np.isin(rest, np.append(np.unique(traces.cells[shown]), -1))]
    return not_shown(scores, decision, rest, noun) if rest.size else "not shown: channels with the same windows"


def _heights(traces: Traces, channels: int, *, parts: bool) -> list[float]:
    """Inches of each panel from the top downwards."""
    signal = 1.5 if channels == 1 else 1.0 if channels <= 4 else 0.55
    if traces.per_channel:
        score = 1.3 if channels == 1 else 0.8 if channels <= 4 else 0.42
        return channels * ([signal, score] if traces.signals else [score])
    return [signal] * channels + [1.6] * parts + [1.8]


def _marks_in_words(decision: Decision | None, look: Look) -> list[Any]:
    from matplotlib.patches import Patch

    if decision is None:
        return []
    handles: list[Any] = []
    for name, mark, colour in look.kinds:
        label = f"{name} {percent(float((decision.marks == mark).mean()), 1)}"
        if mark == 0:
            handles.append(Patch(facecolor="white", edgecolor="#999999", label=label))
        else:
            handles.append(Patch(color=colour, alpha=FAINT if look.faint else 1.0, label=label))
    return handles
