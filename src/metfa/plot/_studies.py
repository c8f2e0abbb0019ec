"""Figures of a study: stability against N or alpha, and against faithfulness."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from metfa._lazy import needs_extra
from metfa._provenance import printable
from metfa._validation import did_you_mean
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
    explainer = _only(explainer, list(study.methods))
    rows = [row for row in evaluation.rows if row["metric"] == "mstd" and row["explainer"] == explainer]
    if not any(row["aggregate"] == "smoothed" for row in rows) or not any(row["aggregate"] == to for row in rows):
        raise ValueError(f"`evaluation` has no mstd of smoothed and {to} maps to be compared")
    fig = Figure(figsize=(6.5, 4.2), layout="constrained")
    ax = fig.subplots()
    lines = [(sampling, outer) for sampling in study.noises for outer in study.outer_noises]
    for place, (sampling, outer) in enumerate(lines):
        of = [row for row in rows if row["outer"] == outer and row["sampling"] in (sampling, None)]
        points = [
            (size if against == "n_samples" else 1 - level, *_ratio(of, to, size, level))
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

    known = list(dict.fromkeys(row["metric"] for row in evaluation.rows))
    for metric in ("mstd", faithfulness):
        if metric not in known:
            raise ValueError(
                f"`evaluation` has no {metric!r}{did_you_mean(metric, known)}; it has {', '.join(known) or 'nothing'}"
            )
    study = evaluation.study
    fig = Figure(figsize=(6.5, 4.8), layout="constrained")
    ax = fig.subplots()
    for place, explainer in enumerate(study.methods):
        colour = COLOURS[place % len(COLOURS)]
        spots: dict[tuple[Any, ...], tuple[float, float, float, float]] = {}
        for entry in dict.fromkeys(map(_entry, (row for row in evaluation.rows if row["explainer"] == explainer))):
            x, y = (_mean(_scores(evaluation, explainer, entry, metric)) for metric in ("mstd", faithfulness))
            if not (np.isnan(x[0]) or np.isnan(y[0])):
                spots[entry] = (*x, *y)
        vanilla = spots.get(("vanilla", None, None, None))
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


def _only(name: str | None, names: Sequence[str]) -> str:
    if name is None and len(names) == 1:
        return names[0]
    if name is None or name not in names:
        raise ValueError(f"`explainer` must be one of {', '.join(names)}, got {name!r}")
    return name


def _entry(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["aggregate"], row["sampling"], row["n_samples"], row["confidence_level"]


def _scores(evaluation: Evaluation, explainer: str, entry: tuple[Any, ...], metric: str) -> dict[str, list[float]]:
    """Scores of each input, under every outer noise."""
    scores: dict[str, list[float]] = {}
    for row in evaluation.rows:
        if (
            row["explainer"] == explainer
            and row["metric"] == metric
            and _entry(row) == entry
            and row["score"] is not None
        ):
            scores.setdefault(row["input"], []).append(row["score"])
    return scores


def _mean(scores: dict[str, list[float]]) -> tuple[float, float]:
    """Mean over inputs of their mean over outer noises, and its standard error."""
    values = np.array([np.mean(of_input) for of_input in scores.values()])
    if not len(values):
        return np.nan, np.nan
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _ratio(rows: list[dict[str, Any]], to: str, size: int, level: float) -> tuple[float, float]:
    """Ratio of means over inputs, and its standard error by the jackknife."""

    def by_input(aggregate: str, n: int | None, at: float | None) -> dict[str, float]:
        return {
            row["input"]: row["score"]
            for row in rows
            if (row["aggregate"], row["n_samples"], row["confidence_level"]) == (aggregate, n, at)
            and row["score"] is not None
        }

    above = by_input("smoothed", size, level)
    below = by_input("mean", size, None) if to == "mean" else by_input("vanilla", None, None)
    shared = [name for name in above if name in below]
    if not shared:
        return np.nan, np.nan
    a, b = (np.array([scores[name] for name in shared]) for scores in (above, below))
    n = len(shared)
    if n == 1:
        return float(a[0] / b[0]), 0.0
    left_out = (a.sum() - a) / (b.sum() - b)
    return float(a.sum() / b.sum()), float(np.sqrt((n - 1) * left_out.var()))
