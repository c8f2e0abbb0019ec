"""Samples needed until 10, 20 and 30 % are undecided: of 50 superpixels (against the rest), and of the pixels.

And the samples until 10 % are marked above: "more than the rest", or important. Most pixels lie far below a natural
break, so that few samples call them unimportant; what a person looks for is above.

Regions are decided by Holm at a fixed N, and by closed e-BH with looks 10 % apart. Pixels are decided by BY at a fixed
N, and by e-BH with looks, about the natural break of all scores of ten samples of another seed. A fixed N is the
smallest that is enough, as if somebody had known it. Target: regions need a fifth of the pixels' samples or less. First
it prints the time of ``sample.over`` for 50 regions, 50 samples and 224 x 224 pixels (target: 50 ms).

    python -m benchmarks.regions_need_few_samples --data FOLDER --photographs 20

FOLDER holds photographs and ``index.csv``; without it, the photographs are scikit-image's coffee and cat.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import torch

import metfa
from benchmarks.looks_cost_half_more_than_hindsight import (
    ABOVE,
    NOISE,
    SPLIT,
    looks,
    needed,
    photographs,
    print_ratios,
    shown_counts,
)
from benchmarks.measuring import seconds
from metfa.explainers import RISE, Gradient

SHARES = (0.10, 0.20, 0.30)
WAYS = {
    "regions, Holm, fixed": ("regions", "holm"),
    "regions, closed e-BH, looks": ("regions", "closed-e-bh"),
    "pixels, BY, fixed": ("pixels", "by"),
    "pixels, e-BH, looks": ("pixels", "e-bh"),
}


def measure(name: str, explainer: Any, pictures: dict[str, torch.Tensor], most: int) -> None:
    found: dict[str, list[dict[Any, int]]] = {way: [] for way in WAYS}
    for number, pixels in enumerate(pictures.values()):
        sample = metfa.explain(explainer, pixels, noise=NOISE, n_samples=most, rng=0, batch_size=10)
        other = metfa.explain(explainer, pixels, list(sample.target), noise=NOISE, n_samples=SPLIT, rng=1)
        pooled = sample.over(metfa.regions.superpixels(sample, 50), against="rest")
        given = float(other.threshold(metfa.stats.jenks)[0])
        for way, (kind, method) in WAYS.items():
            used, threshold = (pooled, 0.0) if kind == "regions" else (sample, given)
            schedule = looks(6, most) if "looks" in way else range(5, most + 1)
            found[way].append(needed(used.values[:, 0], threshold, schedule, method, shares=SHARES))
        print(f"{name}, photograph {number}: { ({way: runs[-1] for way, runs in found.items()}) }", flush=True)
    print(f"\n{name}, {len(pictures)} photographs, N at most {most}")
    for share in ("above", *SHARES):
        what = f"{ABOVE:.0%} above" if share == "above" else f"{share:.0%} undecided"
        for way, runs in found.items():
            print(f"  {what}, {way}: N = {shown_counts([run.get(share) for run in runs], most)}")
        for kind, of in (
            ("fixed", ("regions, Holm, fixed", "pixels, BY, fixed")),
            ("looks", ("regions, closed e-BH, looks", "pixels, e-BH, looks")),
        ):
            few, many = (found[way] for way in of)
            print_ratios(f"regions over pixels, {kind}", few, many, share)


def over() -> None:
    """Print how long it takes to pool."""
    rng = np.random.default_rng(0)
    picture = rng.random((1, 1, 224, 224), dtype=np.float32)
    sample = metfa.explain(
        lambda inputs, target: inputs[:, 0] ** 2,  # noqa: ARG005
        picture,
        0,
        noise=NOISE,
        n_samples=50,
        predict=None,
        rng=0,
    )
    regions = metfa.Regions((np.arange(224 * 224) * 50 // 224**2).reshape(224, 224), against="rest")
    times = [seconds(lambda: sample.over(regions)) for _ in range(9)]
    print(f"over 50 regions, 50 samples, 224 x 224: {1e3 * statistics.median(times):.0f} ms (target 50)", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--photographs", type=int, default=2)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--rise", type=int, default=0, metavar="PHOTOGRAPHS", help="also RISE of 200 masks on so many")
    parser.add_argument("--rise-samples", type=int, default=60)
    options = parser.parse_args()
    over()
    loaded = metfa.models.load("efficientnet-lite0")
    pictures = photographs(options.data, loaded.preprocess, options.photographs)
    measure("Gradient", Gradient(loaded.module), pictures, options.samples)
    if options.rise:
        some = dict(list(pictures.items())[: options.rise])
        measure("RISE, 200 masks", RISE(loaded.module, n_masks=200), some, options.rise_samples)
