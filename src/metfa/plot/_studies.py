"""Figures of a study: stability against N or alpha, and against faithfulness."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from metfa._lazy import needs_extra
from metfa._provenance import printable
from metfa.evaluation.tables import VANILLA, Cell, Entry, Figures, only_explainer, require_metric
from metfa.plot._curves import COLOURS
from metfa.plot._palettes import LITERAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from metfa.evaluation.results import Evaluation

__all__ = ["mstd_ratio", "stability_and_faithfulness"]


def mstd_ratio(
    evaluation: Evaluation,
    *,
    against: Literal["n_samples", "alpha"] = "n_samples",
    to: Literal["mean", "vanilla"] = "mean",
    explainer: str | None = None,
    title: str | None = None,
) -> Figure:
    """Stability of the smoothed map relative to another map, against N or alpha (paper, figures on N and alpha).

    The ratio is that of the means over inputs; bars are two standard errors to each side, by the jackknife over inputs.

    Parameters
    ----------
    evaluation : Evaluation
        Of a study with the metric "mstd" and several `n_samples` or `confidence_level`.
    against : {"n_samples", "alpha"}
        The horizontal axis; alpha is 1 - confidence level.
    to : {"mean", "vanilla"}
        What the smoothed map is compared with: SmoothGrad's mean of the same samples, or one explanation.
    explainer : str, optional
        May be left out where there is one.
    title : str, optional
        Heading; shown as plain text.
    """
    with needs_extra("a figure"):
        from matplotlib.figure import Figure

    for name, value, allowed in (("against", against, ("n_samples", "alpha")), ("to", to, ("mean", "vanilla"))):
        if value not in allowed:
            raise ValueError(f"`{name}` must be one of {', '.join(allowed)}, got {value!r}")
    study = evaluation.study
    explainer = only_explainer(explainer, study)
    maps = evaluation.figures.get(("mstd", explainer), {})
    kinds = {entry[0] for entry in maps}
    if not {"smoothed", to} <= kinds:
        raise ValueError(f"`evaluation` has no mstd of smoothed and {to} maps to be compared")
    fig = Figure(figsize=(6.5, 4.2), layout="constrained")
    ax = fig.subplots()
    lines = [(sampling, outer) for sampling in study.noises for outer in study.outer_noises]
    for place, (sampling, outer) in enumerate(lines):
        points = [
            (size if against == "n_samples" else 1 - level, *_ratio(maps, to, (sampling, size, level), outer))
            for size in (study.sizes if against == "n_samples" else study.sizes[-1:])
            for level in (study.levels if against == "alpha" else study.levels[:1])
        ]
        x, ratio, error = (np.array(column, dtype=float) for column in zip(*points, strict=True))
        aside = 0.012 * (place - (len(lines) - 1) / 2)  # bars side by side
        spread = x * aside if against == "alpha" else np.ptp(study.sizes) * aside
        ax.errorbar(
            x + spread, ratio, yerr=2 * error, color=COLOURS[place % len(COLOURS)], marker="o", markersize=4, capsize=3,
            label=printable(f"P = {sampling}, outer noise {outer}"),
        )  # fmt: skip
    ax.set_xscale("log" if against == "alpha" else "linear")
    ticks = [1 - level for level in study.levels] if against == "alpha" else list(study.sizes)
    ax.set_xticks(ticks, labels=[f"{tick:.6g}" for tick in ticks])
    ax.minorticks_off()
    ax.axhline(1, color="black", linewidth=0.8, linestyle=":")
    ax.set_xlabel("samples N" if against == "n_samples" else f"alpha (N = {study.sizes[-1]})")
    ax.set_ylabel(f"mstd, smoothed / {'mean of the same samples' if to == 'mean' else 'vanilla'}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#dddddd", linewidth=0.6)
    legend = ax.legend(frameon=False, fontsize="small")
    for text in legend.get_texts():
        text.set(**LITERAL)
    fig.suptitle(textwrap.fill(title or f"stability of {printable(explainer)}", 80), fontsize="large", **LITERAL)
    return fig


def stability_and_faithfulness(
    evaluation: Evaluation, *, faithfulness: str = "overall", title: str | None = None
) -> Figure:
    """Every map of a study by its stability (mstd) and a metric of its faithfulness, means over inputs.

    Up is more faithful, left is more stable; bars are two standard errors to each side. Vanilla maps are hollow, and a
    line leads from each to what smoothing makes of it.

    Parameters
    ----------
    evaluation : Evaluation
        Of a study with the metric "mstd" and one of faithfulness.
    faithfulness : str
        Such as "overall", "insertion" or "RO".
    title : str, optional
        Heading; shown as plain text.
    """
    with needs_extra("a figure"):
        from matplotlib.figure import Figure

    for metric in ("mstd", faithfulness):
        require_metric(metric, evaluation)
    study = evaluation.study
    fig = Figure(figsize=(6.5, 4.8), layout="constrained")
    ax = fig.subplots()
    for place, explainer in enumerate(study.methods):
        colour = COLOURS[place % len(COLOURS)]
        spots: dict[tuple[Any, ...], tuple[float, float, float, float]] = {}
        stable, faithful = (evaluation.figures.get((metric, explainer), {}) for metric in ("mstd", faithfulness))
        for entry in stable:
            x, y = _mean(stable[entry]), _mean(faithful.get(entry, {}))
            if not (np.isnan(x[0]) or np.isnan(y[0])):
                spots[entry] = (*x, *y)
        vanilla = spots.get(VANILLA)
        for entry, (x, dx, y, dy) in spots.items():
            first = entry == next(iter(spots))
            hollow = entry[0] == "vanilla"
            if vanilla is not None and not hollow:
                ax.plot([vanilla[0], x], [vanilla[2], y], color=colour, linewidth=0.8, alpha=0.6, zorder=1)
            ax.errorbar(
                x, y, xerr=2 * dx, yerr=2 * dy, color=colour, capsize=2, elinewidth=0.8, zorder=2,
                marker="s" if entry[0] == "mean" else "o", markerfacecolor="white" if hollow else colour,
                label=printable(explainer) if first else None,
            )  # fmt: skip
    ax.set_xlabel("mstd: mean standard deviation of the map under outer noise (left: more stable)")
    ax.set_ylabel(f"{faithfulness} (up: {'less' if faithfulness in ('deletion', 'RD') else 'more'} faithful)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#dddddd", linewidth=0.6)
    legend = ax.legend(
        frameon=False, fontsize="small", title="hollow: vanilla, square: mean, disc: smoothed", title_fontsize="small"
    )
    for text in legend.get_texts():
        text.set(**LITERAL)
    if title is not None:
        fig.suptitle(textwrap.fill(title, 80), fontsize="large", **LITERAL)
    return fig


def _mean(figures: Figures) -> tuple[float, float]:
    """Mean over inputs of their mean over outer noises, and its standard error."""
    of_inputs: dict[str, list[float]] = {}
    for (name, _), figure in figures.items():
        if figure is not None:
            of_inputs.setdefault(name, []).append(figure)
    cell = Cell.of(float(np.mean(of_input)) for of_input in of_inputs.values())
    return cell.mean, cell.standard_error if cell.n > 1 else 0.0


def _ratio(
    maps: dict[Entry, Figures], to: str, sampled: tuple[str, int, float], outer: str | None
) -> tuple[float, float]:
    """Ratio of means over inputs, smoothed to another map of the same samples; its standard error by the jackknife."""
    sampling, size, level = sampled
    below = maps.get(VANILLA if to == "vanilla" else ("mean", sampling, size, None), {})
    above = maps.get(("smoothed", sampling, size, level), {})
    pairs = [
        (figure, below[key])
        for key, figure in above.items()
        if key[1] == outer and figure is not None and below.get(key) is not None
    ]
    if not pairs:
        return np.nan, np.nan
    a, b = np.array(pairs, dtype=float).T
    n = len(pairs)
    if n == 1:
        return float(a[0] / b[0]), 0.0
    left_out = (a.sum() - a) / (b.sum() - b)
    return float(a.sum() / b.sum()), float(np.sqrt((n - 1) * left_out.var()))
