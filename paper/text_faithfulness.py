"""Curves of faithfulness and robust faithfulness of words: FDT, ST and FAT against the number of words, 1 to 10.

In the paper: LEMNA with 2000 copies (and 500), P = P(0.5), N = 10, 10 draws of O_n = P(p), p = 0, 0.3, 0.5, 0.7; the
curves of the smoothed scores are better everywhere: lower for FDT, higher for ST and FAT.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from paper.cells import cell
from paper.setting import digest
from paper.text_setting import AGGREGATES, parser, read, run
from paper.word_curves import METRICS, named, points

N = 10
KEPT = (1, 2, 3, 5, 10)  # numbers of words that the tables keep, beside the mean over all ten
STRENGTHS = (0.0, 0.3, 0.5, 0.7)
LEVELS = ("explainer", "what", "p", "aggregate")
COLOURS = {"vanilla": "#d55e00", "mean": "#555555", "smoothed": "#0072b2"}
STYLES = {"vanilla": "s-", "mean": ":", "smoothed": "o-"}  # mean and smoothed nearly coincide


def condensed(rows: list[dict]) -> list[dict]:
    """Of each curve the mean, in place of m = 1 to 10, and some of its points; without a curve, its reason."""
    curves: dict[tuple, dict[int, dict]] = {}
    for row in rows:
        what, p, m = named(row["metric"])
        curves.setdefault((what, p, row["aggregate"]), {})[m] = row
    found = []
    for (what, p, _), curve in curves.items():
        lost = [row for row in curve.values() if "score" not in row]
        mean = lost[0] if lost else {**curve[1], "score": float(np.mean([row["score"] for row in curve.values()]))}
        found.append({**mean, "metric": f"{what}, p = {p}"})
        found += [{**curve[m], "metric": f"{what}, p = {p}, m = {m}"} for m in KEPT]
    return found


def curves(frame: pd.DataFrame) -> pd.DataFrame:
    """One line for each text, map, metric and p; columns are numbers of words, and 0 for the mean over all."""
    parts = pd.DataFrame([parted(name) for name in frame.metric], columns=["what", "p", "m"], index=frame.index)
    return frame.join(parts).pivot(index=[*LEVELS, "input"], columns="m", values="score").dropna()


def parted(name: str) -> tuple[str, float, int]:
    """Metric, p and m of a name, m = 0 where it has none."""
    return named(name if ", m = " in name else f"{name}, m = 0")


def shown(found: pd.DataFrame) -> None:
    """Means over 1 to 10 words, and smoothed minus vanilla for each text."""
    explainers = found.index.unique("explainer")
    for explainer, what, p in product(explainers, METRICS, STRENGTHS):
        rows = [found.xs((explainer, what, p, name), level=LEVELS) for name in AGGREGATES]
        common = sorted(set.intersection(*(set(maps.index) for maps in rows)))
        maps = {name: values.loc[common, 0].to_numpy() for name, values in zip(AGGREGATES, rows, strict=True)}
        print(
            f"{explainer}, {what}, p = {p}: "
            + ", ".join(f"{name} {cell(values)}" for name, values in maps.items())
            + f"; smoothed - vanilla {cell(maps['smoothed'] - maps['vanilla'], sign='+')}"
            + f", - mean {cell(maps['smoothed'] - maps['mean'], sign='+')} (n = {len(common)})"
        )


def drawn(found: pd.DataFrame, explainer: str, file: Path) -> None:
    """A figure: strengths of the noise down, metrics across; bands are standard errors over texts."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(STRENGTHS), len(METRICS), figsize=(10, 11), sharex=True, layout="constrained")
    for line, p in zip(axes, STRENGTHS, strict=True):
        for ax, what in zip(line, METRICS, strict=True):
            for name in AGGREGATES:
                rows = found.xs((explainer, what, p, name), level=LEVELS)[list(KEPT)]
                mean, error = rows.mean(), rows.std(ddof=1) / np.sqrt(len(rows))
                ax.plot(rows.columns, mean, STYLES[name], color=COLOURS[name], label=name, markersize=3)
                ax.fill_between(rows.columns, mean - error, mean + error, color=COLOURS[name], alpha=0.12, linewidth=0)
            better = "lower" if what == "FDT" else "higher"
            ax.set_title(f"{what if p == 0 else 'R' + what}, p = {p} ({better} is better)", fontsize=9)
    axes[0, 0].legend(fontsize=8)
    figure.supxlabel("words taken")
    figure.supylabel("class probability")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    made = parser(__doc__, texts=100, quick=40)
    made.add_argument("--figures", type=Path, help="folder for the figures")
    options = made.parse_args()
    model, texts = read(options)
    draws = 5 if options.quick else 10
    metrics = points(N, STRENGTHS, draws, tuple(texts.everything))
    about = {
        "curves": list(METRICS),
        "words": N,
        "p": list(STRENGTHS),
        "draws": draws,
        "planted in": digest(text.encode() for text in texts.everything),
    }
    result = run(options, "text-faithfulness", model, texts, described=about, condensed=condensed, metrics=metrics)
    found = curves(result.to_dataframe())
    shown(found)
    if options.figures is not None:
        for explainer in result.study.methods:
            drawn(found, explainer, options.figures / f"{explainer.replace(', ', '-').replace(' ', '-')}.png")
