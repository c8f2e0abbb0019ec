"""The paper's figure: how often 95 % intervals of few skewed scores hold what they are about.

``python paper/joss/coverage.py`` writes coverage.png beside itself. Scores follow a log-normal law, as saliency does.
The interval of the median is that of `metfa.stats`; its level is exact for every continuous law. Beside it stands the
mean with 1.96 standard errors, which is what a standard deviation of a handful of explanations is usually turned into.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from metfa import stats

NUMBERS = (6, 8, 10, 15, 20, 30, 50, 70, 100)
TRIALS, SIGMA, SEED = 20_000, 1.5, 0


def covered(n: int) -> tuple[float, float, float]:
    """Level of the median's interval, its share of hits, and that of the mean's, at N samples."""
    samples = np.exp(SIGMA * np.random.default_rng(SEED).normal(size=(n, TRIALS)))
    median = stats.median_interval(samples, 0.95)
    means, errors = samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(n)
    of_median = ((median.low <= 1) & (median.high >= 1)).mean()
    of_mean = (np.abs(means - np.exp(SIGMA**2 / 2)) <= 1.96 * errors).mean()
    return median.confidence_level, float(of_median), float(of_mean)


def main() -> None:
    """Draw the figure."""
    exact, of_median, of_mean = np.array([covered(n) for n in NUMBERS]).T
    figure = Figure(figsize=(5.6, 3.2), layout="constrained")
    ax = figure.subplots()
    ax.axhline(0.95, color="black", linewidth=0.8, linestyle=":")
    ax.plot(NUMBERS, exact, color="#0b2a63", label="median, exact interval: stated level")
    ax.plot(NUMBERS, of_median, "o", color="#0b2a63", markersize=4, label=f"median, {TRIALS:,} trials")
    ax.plot(NUMBERS, of_mean, "s--", color="#c56a00", markersize=4, label="mean with 1.96 standard errors")
    ax.set_xlabel("samples N")
    ax.set_ylabel("coverage")
    ax.set_ylim(0.55, 1)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small", loc="lower right")
    figure.savefig(Path(__file__).with_name("coverage.png"), dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main()
