"""Samples that `AttributionSample.plan` asks for, against those that it takes, on photographs.

Target: on the median photograph the two differ by a factor of at most 1.5. The plan sees 20 samples. What it takes is
the smallest fixed N, among those that are 8 % apart, at which the share of undecided pixels of *other* samples is
reached. The threshold is the natural break of all scores of the samples themselves.

    python -m benchmarks.plans_are_within_half --data FOLDER

FOLDER holds photographs and ``index.csv``; without it, the photographs are scikit-image's coffee and cat.
"""

import argparse
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np

import metfa
from benchmarks.looks_cost_half_more_than_hindsight import NOISE, photographs
from metfa.explainers import Gradient
from metfa.results.families import histograms, undecided_share

SHARES = (0.05, 0.10)
CORRECTIONS = ("none", "bh", "by")
SEEN = 20


def taken(sample: metfa.AttributionSample) -> dict[tuple[str, float], int]:
    """Smallest N at which so few pixels are undecided, for each correction and share that the samples suffice for."""
    found: dict[tuple[str, float], int] = {}
    n = 10
    while n <= sample.n_samples:
        first = replace(sample, values=sample.values[:n], predictions=None, provenance={})
        test = first.test(metfa.stats.jenks)
        up, down = histograms(test.above, test.below, n)
        for correction in CORRECTIONS:
            share = undecided_share(up, down, metfa.Terms(0.0, 0.05, correction), any_time=False)
            for asked in SHARES:
                if share <= asked:
                    found.setdefault((correction, asked), n)
        n = max(n + 1, int(n * 1.08))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--photographs", type=int, default=20)
    parser.add_argument("--most", type=int, default=200)
    options = parser.parse_args()
    loaded = metfa.models.load("efficientnet-lite0")
    found: dict[tuple[str, float], list[tuple[int | None, int | None]]] = {}
    pictures = photographs(options.data, loaded.preprocess, options.photographs)
    for number, pixels in enumerate(pictures.values()):
        explainer = Gradient(loaded.module)
        seen = metfa.explain(explainer, pixels, noise=NOISE, n_samples=SEEN, rng=1)
        fresh = metfa.explain(explainer, pixels, list(seen.target), noise=NOISE, n_samples=options.most, rng=0)
        took = taken(fresh)
        for correction in CORRECTIONS:
            for share in SHARES:
                plan = seen.plan(share, metfa.stats.jenks, correction=correction)
                found.setdefault((correction, share), []).append((plan.n_samples, took.get((correction, share))))
        print(f"photograph {number}: { {what: pairs[-1] for what, pairs in found.items()} }", flush=True)
    for (correction, share), pairs in found.items():
        known = [(planned, took) for planned, took in pairs if planned is not None and took is not None]
        ratios = [planned / took for planned, took in known]
        if ratios:
            within = np.mean([1 / 1.5 <= ratio <= 1.5 for ratio in ratios])
            print(
                f"{share:.0%} undecided, correction {correction}: planned over taken: median "
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), within 1.5: {within:.0%}; "
                f"{len(ratios)} photographs (the others take more than {options.most})"
            )


if __name__ == "__main__":
    main()
