"""Points of the curves FDT, ST and FAT as metrics of a study, because a study has one figure for each metric."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from metfa import metrics, text

METRICS = {"FDT": text.fdt, "ST": text.st, "FAT": text.fat}


@dataclass(frozen=True)
class Point:
    """Class probability at m words: without the best m, with them alone, or with them in another text."""

    metric: str
    m: int
    n: int  # the largest m of the curve
    p: float  # probability of the outer noise; 0 is the text itself
    draws: int  # number of draws of the noise and of the other text
    others: tuple[str, ...]

    def __call__(self, model: Any, inputs: list[str], attributions: np.ndarray, target: list[int]) -> float:
        """NaN where the scores of the words are all the same."""
        (line,), (scores,), (goal,) = inputs, attributions.tolist(), target
        return curve(self.metric, self.n, self.p, self.draws, self.others, model, line, tuple(scores), goal)[self.m - 1]


@lru_cache(maxsize=128)  # all points of a curve need it: first all maps at m = 1, then at m = 2, ...
def curve(
    metric: str,
    n: int,
    p: float,
    draws: int,
    others: tuple[str, ...],
    model: Any,
    line: str,
    scores: tuple[float, ...],
    goal: int,
) -> np.ndarray:
    """Mean over the draws, (n,)."""
    settings = {"n": n, **({"others": list(others)} if metric == "FAT" else {})}
    asked = model, [line], [list(scores)], [goal]
    found: Iterable[Any]
    if p > 0:
        judged = metrics.robust(METRICS[metric], noise=text.Synonyms(p), n_outer=draws, rng=0)
        found = judged(*asked, **settings).draws
    else:
        seeds = range(draws if metric == "FAT" else 1)  # each draws another text; FDT and ST draw nothing
        found = [METRICS[metric](*asked, **settings, rng=seed) for seed in seeds]
    return np.mean([np.where(np.isnan(one.raw), np.nan, one.curves[0]) for one in found], axis=0)


def points(n: int, strengths: Iterable[float], draws: int, others: tuple[str, ...]) -> dict[str, Point]:
    """All points by name; `named` reads metric, p and m from a name."""
    return {
        f"{metric}, p = {p}, m = {m}": Point(metric, m, n, p, draws, others)
        for metric in METRICS
        for p in strengths
        for m in range(1, n + 1)
    }


def named(name: str) -> tuple[str, float, int]:
    """Metric, p and m."""
    metric, p, m = name.split(", ")
    return metric, float(p.removeprefix("p = ")), int(m.removeprefix("m = "))
