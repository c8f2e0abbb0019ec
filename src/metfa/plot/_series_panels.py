"""The panels of the figure of a series: marks behind the signal, and scores with the interval of their median."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa.plot._bars import score_name
from metfa.plot._headings import LITERAL
from metfa.plot.images import FAINT
from metfa.plot.traces import Traces, runs_of
from metfa.results.cautions import named_parts
from metfa.results.sample import AttributionSample
from metfa.results.scores import Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Look", "draw_both", "draw_marks", "draw_scores_along", "draw_signals", "name_panel"]

SHADE = {1: 0.55, -1: 0.22, 0: 0.0}  # weight of a mark's colour behind the signal, which is black
LANE = 0.06  # inches of a strip at the bottom of a panel, which has the full colours
BAND = "#8fa8c8"
LINES = ("#1b1b1f", "#c0392b")  # of two signals or scores the second one


@dataclass(frozen=True)
class Look:
    """How marks are drawn: name, mark and colour of each kind; `faint` under a caution."""

    kinds: list[tuple[str, int, str]]
    faint: bool


def draw_marks(ax: Axes, traces: Traces, marks: np.ndarray, look: Look) -> None:
    """Shade the steps that are decided, and lay a strip of the full colour below them."""
    edges, across, lane = traces.edges, ax.get_xaxis_transform(), _lane(ax)
    for _, mark, colour in look.kinds:
        pieces = [(edges[start], edges[stop] - edges[start]) for start, stop in runs_of(marks, mark)]
        if mark == 0 or not pieces:
            continue
        for low, height, weight in ((0.0, 1.0, SHADE[mark]), (0.0, lane, 1.0)):
            weight = weight * FAINT if look.faint else weight
            ax.broken_barh(pieces, (low, height), transform=across, color=colour, alpha=weight, linewidth=0, zorder=0.5)


def draw_signals(ax: Axes, traces: Traces, channel: int, sample: AttributionSample) -> list[Any]:
    """Draw the signal of one channel, of changed inputs both; returns the entries of the legend."""
    width = 1.0 if len(traces.names) == 1 else 0.7
    lines = [
        ax.plot(traces.times, signal[channel], color=colour, linewidth=width, zorder=3)[0]
        for signal, colour in zip(traces.signals, LINES, strict=False)
    ]
    _tidy(ax)
    names = ["signal"]
    if len(lines) > 1:
        names = [f"signal, {name}" for name, _ in named_parts(sample, None, None)]
    for line, name in zip(lines, names, strict=True):
        line.set_label(name)
    return lines


def draw_scores_along(ax: Axes, traces: Traces, scores: Scores, row: int, threshold: float | None) -> list[Any]:
    """Draw the scores of one row with their interval; returns the entries of the legend."""
    cells = traces.cells[row]

    def along(values: np.ndarray) -> np.ndarray:
        return np.append(values, np.nan)[cells]

    step: dict[str, Any] = {"drawstyle": "steps-mid"}
    handles: list[Any] = []
    if scores.ends is not None:
        low, high = map(along, scores.ends)
        label = f"{scores.intervals(1)} of the {scores.median}"
        handles.append(
            ax.fill_between(traces.times, low, high, step="mid", color=BAND, linewidth=0.4, zorder=2, label=label)
        )
    if scores.vanilla is not None:
        look: dict[str, Any] = {"color": LINES[1], "linewidth": 0.6, "alpha": 0.8, "zorder": 3, **step}
        handles += ax.plot(traces.times, along(scores.vanilla), label="vanilla: one explanation, no noise", **look)
    handles += ax.plot(
        traces.times, along(scores.values), color="black", linewidth=0.9, zorder=4, label=scores.called, **step
    )
    ax.axhline(0, color="black", linewidth=0.5, zorder=1)
    if threshold and np.isfinite(threshold):
        label = f"threshold {threshold:.3g}"
        handles.append(ax.axhline(threshold, color="black", linestyle=":", linewidth=1.0, zorder=5, label=label))
    _tidy(ax)
    return handles


def draw_both(ax: Axes, traces: Traces, sample: AttributionSample, confidence_level: float) -> list[Any]:
    """Draw the scores of both parts of a comparison; returns the entries of the legend."""
    handles = []
    for (name, part), colour in zip(named_parts(sample, *(sample.pair or ())), LINES, strict=True):
        scores = Scores.of(part, confidence_level)
        values = np.append(scores.values, np.nan)[traces.cells[0]]
        line: dict[str, Any] = {"color": colour, "linewidth": 0.9, "drawstyle": "steps-mid"}
        handles += ax.plot(traces.times, values, label=f"{name}: {scores.called}", **line)
    ax.axhline(0, color="black", linewidth=0.5, zorder=1)
    ax.set_ylabel(textwrap.fill(score_name(sample, of_parts=True), 24), fontsize="small", **LITERAL)
    _tidy(ax)
    return handles


def _tidy(ax: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.yaxis.set_major_locator(MaxNLocator(3, min_n_ticks=2))
    ax.tick_params(axis="y", labelsize="x-small")
    ax.spines[["top", "right"]].set_visible(False)
    low, high = ax.get_ylim()
    ax.set_ylim(low - 1.5 * _lane(ax) * (high - low), high)  # room for the strip below


def _lane(ax: Axes) -> float:
    """Height of the strip as a share of its panel."""
    return LANE * ax.figure.dpi / ax.bbox.height


def name_panel(ax: Axes, name: str, *, faint: bool = False) -> None:
    """The name of a panel at its left, in at most two lines."""
    text = "\n".join(textwrap.wrap(name, 16, max_lines=2, placeholder=" …"))
    look: dict[str, Any] = {
        "rotation": 0,
        "ha": "right",
        "va": "center",
        "fontsize": "small" if not faint else "x-small",
    }
    ax.set_ylabel(text, color="#555555" if faint else "black", **look, **LITERAL)
