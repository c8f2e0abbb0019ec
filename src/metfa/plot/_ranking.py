"""A matrix of pairs: which feature is decided to score above which."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE, palette_named
from metfa._base.percents import counted
from metfa._base.validation import check_kind, positive_int
from metfa.plot._bars import label_of
from metfa.plot._canvas import new_axes
from metfa.plot._headings import LITERAL, draw_heading, draw_legend
from metfa.results.cautions import FLIPS_FROM, cautions, line_of_row
from metfa.results.decisions import TooFewSamplesError
from metfa.results.sample import AttributionSample

if TYPE_CHECKING:
    from metfa.plot.settings import OnAxes

__all__ = ["ranking"]

CELL = 0.3  # inches


def ranking(
    sample: AttributionSample,
    *,
    index: int = 0,
    title: str | None = None,
    alpha: float | None = None,
    correction: str | None = None,
    max_features: int = 30,
    palette: str = DEFAULT_PALETTE,
    ax: OnAxes | None = None,
) -> OnAxes:
    """Draw which features of an input, or of a population, score above which.

    A cell is about the feature of its line and that of its column: does the first score above the second, below it, or
    are they not shown to differ? See `AttributionSample.ranking`, which gives the order of the lines too.

    Parameters
    ----------
    sample : AttributionSample
        With at most 100 features, such as ``sample.across_inputs()``.
    index : int
        Which input of the batch.
    title : str, optional
        Heading; shown as plain text.
    alpha, correction
        As for `AttributionSample.ranking`.
    max_features : int
        How many features are shown at most, from the first of the order on. All pairs are counted.
    palette : {"colourblind", "paper"}
        Colours of the marks.
    ax : matplotlib.axes.Axes, optional
        Empty axes to draw into, which are returned: the heading is their title, and the legend stands below them.

    Returns
    -------
    matplotlib.figure.Figure, or `ax`
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it.

    Raises
    ------
    TypeError, ValueError
        For more features than `AttributionSample.pairwise` compares. Too few samples are no error: the figure says so.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> rows = np.random.default_rng(0).normal(size=(60, 3))
    >>> sample = metfa.explain(lambda x, target: x * np.array([3.0, 1.0, 0.0]), rows, 0,
    ...                        noise=metfa.noise.Gaussian(0.1), n_samples=10, rng=0)
    >>> figure = metfa.plot.ranking(sample.across_inputs())
    """
    with needs_extra("a figure"):
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Patch

    check_kind(sample, "sample", AttributionSample, "`sample.across_inputs()`")
    colours = palette_named(palette)
    max_features = positive_int(max_features, "max_features")
    one = sample.of_input(index)
    warned = cautions(one, 0, FLIPS_FROM)
    about = line_of_row(sample, index)
    try:
        found = one.ranking(alpha=alpha, correction=correction)
    except TooFewSamplesError as error:
        canvas, panel = new_axes((6.5, 2.0), ax)
        panel.set_axis_off()
        panel.text(0.5, 0.5, textwrap.fill(f"no ranking: {error}", 70), ha="center", va="center", **LITERAL)
        draw_heading(canvas, title, about=about, cautions=warned)
        return canvas
    order, rest = np.split(found.order, [max_features])
    m = len(order)
    marks = found.marks[np.ix_(order, order)]
    labels = [label_of(found.names, feature, 28) for feature in order]
    notes = [f"a cell says how the {sample.noun} of its line scores against the {sample.noun} of its column"]
    if rest.size:
        notes.append(f"not shown: the last {counted(rest.size, sample.noun)} of the order")
    side = CELL * m
    longest = max(len(line) for label in labels for line in label.splitlines())
    size = side + 0.085 * longest + 0.6
    width = max(size, 6.5)
    canvas, panel = new_axes((width, size + 1.6 + 0.2 * len(notes)), ax, named="xy")
    kinds = [("above", 1, colours.important), ("not shown to differ", 0, colours.undecided)]
    kinds.append(("below", -1, colours.unimportant))
    painted = np.ones((m, m, 3))
    handles: list[Any] = []
    for name, mark, colour in kinds:
        painted[marks == mark] = to_rgb(colour)
        handles.append(Patch(color=colour, label=name))
    painted[np.eye(m, dtype=bool)] = 1.0
    panel.imshow(painted, interpolation="nearest")
    panel.set_xticks(np.arange(m), labels=labels, rotation=90, fontsize="small", **LITERAL)
    panel.set_yticks(np.arange(m), labels=labels, fontsize="small", **LITERAL)
    panel.set_xticks(np.arange(m + 1) - 0.5, minor=True)
    panel.set_yticks(np.arange(m + 1) - 0.5, minor=True)
    panel.grid(which="minor", color="white", linewidth=1.2)
    panel.tick_params(which="both", length=0)
    panel.xaxis.tick_top()
    panel.spines[:].set_visible(False)
    total = counted(found.decision.marks.size, "pair")
    said = [
        f"{found.undecided:,} of {total} not shown to differ; {found.decision.terms.level}",
        f"compared: {sample.score_name}, in {counted(sample.n_samples, sample.sample_noun)}",
        *notes,
    ]
    draw_legend(canvas, handles, said, room=int(14 * width), width=int(14 * width))
    draw_heading(canvas, title, about=about, cautions=warned)
    return canvas
