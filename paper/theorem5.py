"""Theorem 5 by simulation: the smoothed map is consistent for the median, and its variance falls as 1 / N.

N times the variance of the smoothed median must level off. Smoothing the median pays if its variance is below that of
the mean (SmoothGrad's map): this is so for laws with heavy tails, but not for the normal law.

    python -m paper.theorem5
"""

import argparse
from time import monotonic, process_time

import numpy as np

from metfa import stats
from paper.kept import Kept
from paper.setting import with_results

__all__ = ["LAWS", "SIZES"]

SIZES = (10, 30, 100, 300, 1000)
CHUNK, CHUNKS = 4_000, 10  # repetitions at a time, and how often
NO_VARIANCE = "Student with 2 degrees of freedom"
LAWS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "uniform": (lambda rng, shape: rng.uniform(-1, 1, shape), 0.0),
    "Laplace": (lambda rng, shape: rng.laplace(size=shape), 0.0),
    NO_VARIANCE: (lambda rng, shape: rng.standard_t(2, shape), 0.0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), float(np.log(2))),
    "nine in ten normal and one in ten ten times wider": (
        lambda rng, shape: rng.normal(size=shape) * np.where(rng.random(shape) < 0.1, 10, 1),
        0.0,
    ),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    with_results(parser)
    options = parser.parse_args()
    setting = {"repetitions": CHUNK * CHUNKS, "n_samples": list(SIZES), "confidence_level": 0.95, "seed": 0}
    kept, until = Kept.opened(options.results / "theorem5.csv", setting), monotonic() + 3600 * options.hours
    for place, (name, (draw, median)) in enumerate(LAWS.items()):
        if name in kept.lines or options.finished or monotonic() > until:
            continue
        clock, rng, figures = process_time(), np.random.default_rng([0, place]), {}
        for n in SIZES:
            drawn = (draw(rng, (n, CHUNK)) for _ in range(CHUNKS))
            pairs = [(stats.smoothed_median(samples), samples.mean(axis=0)) for samples in drawn]
            smoothed, mean = map(np.concatenate, zip(*pairs, strict=True))
            ratio = smoothed.var() / mean.var()
            # The delta method for the ratio of two variances of the same samples.
            squares = [(values - values.mean()) ** 2 / values.var() for values in (smoothed, mean)]
            error = ratio * (squares[0] - squares[1]).std() / len(mean) ** 0.5
            figures |= {f"{n}, smoothed": float(n * smoothed.var()), f"{n}, bias": float(smoothed.mean() - median),
                        f"{n}, ratio": float(ratio), f"{n}, error of ratio": float(error)}  # fmt: skip
        figures["mean has a variance"] = float(name != NO_VARIANCE)
        kept.add(name, figures, process_time() - clock)
    for name, line in kept.lines.items():
        print(f"{name}: " + ", ".join(f"{what} {value}" for what, value in line.items()))
