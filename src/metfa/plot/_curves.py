"""The figure of insertion and deletion curves, with bands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.provenance import printable
from metfa._base.validation import check_flag, positive_int
from metfa.metrics.curves import FaithfulnessCurve
from metfa.plot._canvas import new_axes
from metfa.plot._headings import LITERAL, draw_heading
from metfa.stats.student import half_width

if TYPE_CHECKING:
    from metfa.plot.settings import OnAxes

__all__ = ["curves"]

COLOURS = ("#0b5394", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")  # distinct for colour-blind readers


def curves(
    named: Mapping[str, FaithfulnessCurve],
    *,
    normalised: bool = True,
    index: int | None = None,
    title: str | None = None,
    ax: OnAxes | None = None,
) -> OnAxes:
    """Draw insertion or deletion curves: their mean over inputs, in a band of 95 % intervals (Student's t).

    Parameters
    ----------
    named : dict of str to FaithfulnessCurve
        Curves by their names in the legend, such as ``{"vanilla": ..., "smoothed": ...}``; of the same inputs.
    normalised : bool
        Divide by the clean probability, as the score does.
    index : int, optional
        The curves of this input alone, without bands.
    title : str, optional
        Heading; shown as plain text.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into, which are returned; the heading is their title.

    Returns
    -------
    matplotlib.figure.Figure, or `ax`
        Not registered with pyplot.

    Raises
    ------
    TypeError, ValueError
        If there is no curve, if a value is not a curve, or if there is no such input.
    """
    with needs_extra("a figure"):
        import matplotlib.figure  # noqa: F401

    if not isinstance(named, Mapping) or not named:
        raise ValueError("`named` must be a dict with at least one curve, such as {'vanilla': insertion(...)}")
    for name, curve in named.items():
        if not isinstance(curve, FaithfulnessCurve):
            raise TypeError(f"`named[{name!r}]` must be a FaithfulnessCurve, got {type(curve).__name__}")
        if index is not None and positive_int(index, "index", 0) >= len(curve):
            raise ValueError(f"`index` must lie in 0..{len(curve) - 1}, got {index}")
    check_flag(normalised, "normalised")
    canvas, panel = new_axes((6.5, 4.2), ax)
    for place, (name, curve) in enumerate(named.items()):
        colour = COLOURS[place % len(COLOURS)]
        values = curve.normalised if normalised else curve.values
        scores = curve.score if normalised else curve.raw
        if index is None:
            values, scores = values[~np.isnan(scores)], scores[~np.isnan(scores)]
        else:
            values, scores = values[[index]], scores[[index]]
        label = f"{printable(name)}: {scores.mean():.3f}" if len(scores) else f"{printable(name)}: no score"
        missing = 0 if index is not None else len(curve) - len(scores)
        label += f" ({missing} of {len(curve)} without a score left out)" if missing else ""
        if not len(values):
            panel.plot([], [], color=colour, label=label)
            continue
        mean = values.mean(axis=0)
        panel.plot(100 * curve.fractions, mean, color=colour, label=label)
        if len(values) > 1:
            error = half_width(1.0, len(values)) * values.std(axis=0, ddof=1) / np.sqrt(len(values))
            panel.fill_between(100 * curve.fractions, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    panel.set_xlabel("features inserted or deleted, best first (%)")
    panel.set_ylabel("class probability / that of the clean input" if normalised else "class probability")
    panel.set_xlim(0, 100)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(color="#dddddd", linewidth=0.6)
    n = max(len(curve) for curve in named.values())
    about = "area below the curve" if index is not None or n == 1 else f"mean area; bands: 95% intervals, {n} inputs"
    panel.legend(title=about, frameon=False, fontsize="small", title_fontsize="small")
    for text in panel.get_legend().get_texts():  # pyright: ignore[reportOptionalMemberAccess]
        text.set(**LITERAL)
    draw_heading(canvas, title)
    return canvas
