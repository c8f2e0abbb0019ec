"""Theorem 5 by simulation: the smoothed map is consistent for the median, and its variance falls as 1 / N.

The script also prints the variance of the mean (SmoothGrad's map) and of the sample median, for several laws. N times
the variance must level off. Smoothing the median pays if its variance is below that of the mean: this is so for laws
with heavy tails, but not for the normal law.
"""

import argparse

import numpy as np

from metfa import stats

LAWS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "uniform": (lambda rng, shape: rng.uniform(-1, 1, shape), 0.0),
    "Laplace": (lambda rng, shape: rng.laplace(size=shape), 0.0),
    "Student, 2 degrees": (lambda rng, shape: rng.standard_t(2, shape), 0.0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), float(np.log(2))),
    "nine normal, one wild": (
        lambda rng, shape: rng.normal(size=shape) * np.where(rng.random(shape) < 0.1, 10, 1),
        0.0,
    ),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    repetitions = 4_000 if options.quick else 40_000
    rng = np.random.default_rng(0)
    print("| law | N | bias of smoothed | N var smoothed | N var median | N var mean | smoothed / mean |")
    print("|---|---|---|---|---|---|---|")
    for name, (draw, median) in LAWS.items():
        for n in (10, 30, 100, 300, 1000):
            samples = draw(rng, (n, repetitions))
            smoothed, middle, mean = stats.smoothed_median(samples), np.median(samples, axis=0), samples.mean(axis=0)
            of = [n * values.var() for values in (smoothed, middle, mean)]
            bias = smoothed.mean() - median
            print(f"| {name} | {n} | {bias:+.4f} | {of[0]:.3f} | {of[1]:.3f} | {of[2]:.3f} | {of[0] / of[2]:.3f} |")
