"""Figures of a study: stability against N or alpha, and against faithfulness."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.percents import percent
from metfa._base.provenance import printable
from metfa._base.validation import check_flag, check_kind, one_of
from metfa.evaluation.directions import better_of
from metfa.evaluation.results import Evaluation
from metfa.evaluation.selection import (
    VANILLA,
    Entry,
    Selection,
    entry_label,
    measure_named,
    only_explainer,
)
from metfa.plot._canvas import new_axes, room_of
from metfa.plot._curves import COLOURS
from metfa.plot._headings import LITERAL, draw_heading
from metfa.plot._study_points import mean_ratio, of_inputs, smoothed_to, stability

if TYPE_CHECKING:
    from metfa.plot.settings import OnAxes


__all__ = ["mstd_ratio", "stability_and_faithfulness"]

DASHES = ("-", "--", ":", "-.")
SHAPES = ("o", "s", "^", "D", "v", "P", "h", "<", ">", "p", "d")  # each can be full or empty


def mstd_ratio(
    evaluation: Evaluation,
    *,
    against: Literal["n_samples", "alpha"] = "n_samples",
    to: Literal["mean", "vanilla"] = "mean",
    explainer: str | None = None,
    sampling: str | None = None,
    n_samples: int | None = None,
    confidence_level: float | None = None,
    title: str | None = None,
    ax: OnAxes | None = None,
) -> OnAxes:
    """Draw the stability of the smoothed map relative to another map, against N or alpha (as in the paper).

    It is the ratio of the means over inputs; the smaller range of a smoothed map is a part of it. Bars are 95 %
    intervals by Student's t, by the jackknife over inputs.

    Parameters
    ----------
    evaluation : Evaluation
        From a study with the metric "mstd" and several `n_samples`, or several `confidence_level`.
    against : {"n_samples", "alpha"}
        The horizontal axis; alpha is 1 - confidence level.
    to : {"mean", "vanilla"}
        What the smoothed map is compared with: SmoothGrad's mean of the same samples, or one explanation.
    explainer : str, optional
        May be left out if there is only one.
    sampling : str, optional
        Only samples under this noise.
    n_samples : int, optional
        Against alpha: the number of samples; by default the largest.
    confidence_level : float, optional
        Against N: only this level; by default one line for each level.
    title : str, optional
        Heading; shown as plain text.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into, which are returned; the heading is their title.

    Raises
    ------
    ValueError
        If the study has no such maps, only one N or level for the horizontal axis, or no input with mstd of both maps.
    """
    with needs_extra("a figure"):
        import matplotlib.figure  # noqa: F401

    for name, value, allowed in (("against", against, ("n_samples", "alpha")), ("to", to, ("mean", "vanilla"))):
        one_of(value, name, allowed)
    study = check_kind(evaluation, "evaluation", Evaluation, "`metfa.evaluate`").study
    explainer = only_explainer(explainer, study)
    measure_named("mstd", study)
    if not {"smoothed", to} <= set(study.maps):
        raise ValueError(f"`evaluation` has no mstd of smoothed and {to} maps to be compared")
    chosen = Selection.of(study, sampling=sampling, n_samples=n_samples, confidence_level=confidence_level)
    along_n = against == "n_samples"
    sizes = chosen.sizes if along_n else chosen.sizes[-1:]
    if len(sizes if along_n else chosen.levels) < 2:
        only = chosen.size_label(sizes[0]) if along_n else percent(chosen.levels[0])
        name = "n_samples" if along_n else "confidence_level"
        raise ValueError(f"`against={against!r}` needs several `{name}`, and there is only {only}")
    canvas, panel = new_axes((8.2, 4.2), ax)
    pairs = [(noise, outer) for noise in chosen.noises for outer in study.outer_noises]
    lines = [(*pair, level) for pair in pairs for level in (chosen.levels if along_n else (None,))]
    ticks = [n for n in sizes if n is not None] if along_n else [1 - level for level in chosen.levels]
    drawn = False
    for place, (noise, outer, level) in enumerate(lines):
        points = [("smoothed", noise, n, level) for n in sizes] if along_n else [
            ("smoothed", noise, sizes[0], level) for level in chosen.levels]  # fmt: skip
        ratio, error = np.array([smoothed_to(to, entry, evaluation, explainer, outer) for entry in points]).T
        if not np.isfinite(ratio).any():
            continue  # such as vanilla maps without an outer noise, which do not vary
        drawn = True
        aside = min(0.012, 0.06 / len(lines)) * (place - (len(lines) - 1) / 2)  # bars side by side
        x = np.array(ticks) + (np.ptp(ticks) if along_n else np.array(ticks)) * aside
        colour, dashes = pairs.index((noise, outer)), chosen.levels.index(level) if level is not None else 0
        names = [f"P = {noise}", f"outer noise {outer}", *([percent(level)] if along_n and level is not None else [])]
        panel.errorbar(
            x, ratio, yerr=error, color=_colour(colour, len(pairs)), linestyle=DASHES[dashes % len(DASHES)],
            marker=SHAPES[dashes % len(SHAPES)], markersize=4, capsize=3, label=printable(", ".join(names)),
        )  # fmt: skip
    if not drawn:
        raise ValueError(f"`evaluation`: no input has an mstd of both maps of {explainer}; its table says why")
    panel.set_xscale("linear" if along_n else "log")
    panel.set_xticks(ticks, labels=[f"{tick:.6g}" for tick in ticks])
    panel.minorticks_off()
    panel.axhline(1, color="black", linewidth=0.8, linestyle=":")
    level = f" (confidence level {percent(chosen.levels[0])})" if len(chosen.levels) == 1 else ""
    panel.set_xlabel(f"samples N{level}" if along_n else f"alpha ({chosen.size_label(sizes[0])})")
    panel.set_ylabel(f"mstd, smoothed / {'mean of the same samples' if to == 'mean' else 'vanilla'}")
    _plain(panel)
    _legend(panel, title=_bars(evaluation))
    draw_heading(canvas, f"stability of {printable(explainer)}" if title is None else title)
    return canvas


def stability_and_faithfulness(
    evaluation: Evaluation,
    *,
    faithfulness: str = "overall",
    relative: bool = True,
    explainer: str | None = None,
    sampling: str | None = None,
    n_samples: int | None = None,
    confidence_level: float | None = None,
    title: str | None = None,
    ax: OnAxes | None = None,
) -> OnAxes:
    """Draw every map of a study by its stability and a metric of its faithfulness, means over inputs.

    Left is more stable. Each explainer has a colour, each map a marker: a cross for vanilla, an empty marker for a
    mean, a full one for a smoothed map, with one shape for each noise, N and level. Lines lead from a vanilla map to
    its means and smoothed maps. Bars are 95 % intervals over inputs by Student's t. Figures under several outer noises
    are averaged over these first.

    Parameters
    ----------
    evaluation : Evaluation
        From a study with the metric "mstd" and a metric of faithfulness.
    faithfulness : str
        Such as "overall", "insertion" or "RO".
    relative : bool
        True: stability is mstd / level, where the level is the mean of the map over the same inputs. False: it is mstd
        alone, in the units of the map, so that an explainer with small values looks stable. Use False for maps with
        values of both signs, because their mean does not show their size.
    explainer, sampling, n_samples, confidence_level : optional
        Show only these.
    title : str, optional
        Heading; shown as plain text.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into, which are returned; the heading is their title.

    Raises
    ------
    ValueError
        If the study has not measured both, if no map has both, or if a level is not above zero and `relative` is True.
    """
    with needs_extra("a figure"):
        from matplotlib.lines import Line2D

    study = check_kind(evaluation, "evaluation", Evaluation, "`metfa.evaluate`").study
    check_flag(relative, "relative")
    measure_named("mstd", study)
    measure = measure_named(faithfulness, study)
    if measure.of not in ("maps", "maps under noise") or (measure.makes and faithfulness == measure.name):
        allowed = [name for one in study.measures if one.of in ("maps", "maps under noise")
                   for name in one.makes or (one.name,)]  # fmt: skip
        known = ", ".join(allowed) or "the study has none"
        raise ValueError(f"`faithfulness` must be a metric of maps: {known}; got {faithfulness!r}")
    chosen = Selection.of(
        study, explainer=explainer, sampling=sampling, n_samples=n_samples, confidence_level=confidence_level
    )
    entries = chosen.entries(study.maps)
    noisy: list[str | None] = [name for name, noise in study.outer_noises.items() if noise is not None]
    rows = len(chosen.explainers) + len(entries) + 1  # of the legend
    canvas, panel = new_axes((8.2, max(4.8, 1 + 0.2 * rows)), ax)
    lost, shown = [], []
    for place, name in enumerate(chosen.explainers):
        colour = _colour(place, len(chosen.explainers))
        spots: dict[Entry, tuple[float, float, float, float]] = {}
        for entry in entries:
            x, dx = stability(evaluation, name, entry, relative=relative)
            y, dy = mean_ratio(
                of_inputs(evaluation, faithfulness, name, entry, noisy if measure.of != "maps" else [None])
            )
            if not np.isnan([x, y]).any():
                spots[entry] = x, dx, y, dy
        without = [entry_label(entry, chosen) for entry in entries if entry not in spots]
        lost += [", ".join([name, *(without if spots else [])])] if without else []
        shown += [(name, colour)] if spots else []
        for entry, (x, dx, y, dy) in spots.items():
            if VANILLA in spots and entry != VANILLA:
                panel.plot(
                    *zip(spots[VANILLA][::2], (x, y), strict=True), color=colour, linewidth=0.8, alpha=0.4, zorder=1
                )
            panel.errorbar(
                x, y, xerr=dx, yerr=dy, color=colour, ecolor=(colour, 0.45), capsize=2, elinewidth=0.8,
                linestyle="", zorder=2, **_marker(entry, entries, colour),
            )  # fmt: skip
    if not shown:
        raise ValueError(f"`evaluation`: no map has both mstd and {faithfulness}; the tables say why")
    units = "mstd / level of the map" if relative else "mstd, in the units of each map"
    panel.set_xlabel(f"{units} (left: more stable)")
    better = {"higher": "up", "lower": "down", None: None}[better_of(faithfulness, same_units=False)]
    panel.set_ylabel(printable(faithfulness) + (f" ({better}: more faithful)" if better else ""), **LITERAL)
    _plain(panel)
    handles = [Line2D([], [], color=colour, linewidth=4, label=printable(name)) for name, colour in shown]
    handles += [Line2D([], [], linestyle="", label=" ")] if entries else []
    handles += [
        Line2D([], [], color="#333333", linestyle="", label=printable(entry_label(entry, chosen)),
               **_marker(entry, entries, "#333333"))
        for entry in entries
    ]  # fmt: skip
    _legend(panel, handles=handles)
    about = [_bars(evaluation)]
    about += [f"means over the outer noises {', '.join(study.outer_noises)}"] if len(study.outer_noises) > 1 else []
    about += [f"not drawn, without a figure: {'; '.join(lost)}"] if lost else []
    caption = "\n".join(textwrap.fill(printable(line), room_of(canvas, 110)) for line in about)
    if canvas is panel:
        panel.set_xlabel(f"{panel.get_xlabel()}\n{caption}", **LITERAL)
    else:
        canvas.supxlabel(caption, fontsize="x-small", **LITERAL)
    draw_heading(canvas, title)
    return canvas


def _marker(entry: Entry, entries: Sequence[Entry], colour: Any) -> dict[str, Any]:
    """One shape for each noise, N and level, full for smoothed maps; a mean has the shape of its first smoothed map."""
    if entry == VANILLA:
        return {"marker": "x", "markersize": 7, "markeredgewidth": 2}
    smoothed = [one for one in entries if one[0] == "smoothed"] or [one for one in entries if one != VANILLA]
    place = next(place for place, one in enumerate(smoothed) if one[1:3] == entry[1:3] and entry[3] in (None, one[3]))
    shape = SHAPES[place] if place < len(SHAPES) else f"${place + 1}$"
    full = entry[0] == "smoothed"
    return {"marker": shape, "markersize": 6, "markerfacecolor": colour if full else "white"}


def _colour(place: int, of: int) -> Any:
    if of <= len(COLOURS):
        return COLOURS[place]
    from matplotlib import colormaps

    return colormaps["turbo"](place / (of - 1))


def _bars(evaluation: Evaluation) -> str:
    n = len(evaluation.inputs)
    return f"bars: 95% intervals over {n} inputs (Student's t)" if n > 1 else "one input: no intervals"


def _plain(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#dddddd", linewidth=0.6)


def _legend(ax: Any, **settings: Any) -> None:
    """Draw the legend beside the axes, where it hides nothing."""
    legend = ax.legend(
        frameon=False, fontsize="small", title_fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), **settings
    )
    for text in legend.get_texts():
        text.set(**LITERAL)
