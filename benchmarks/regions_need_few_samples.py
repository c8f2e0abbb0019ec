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
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import metfa
from benchmarks.looks_cost_half_more_than_hindsight import NOISE, SPLIT, looks, photographs, shown_counts
from metfa.explainers import RISE, Gradient
from metfa.results.families import histograms, least_counts, undecided_share

SHARES = (0.10, 0.20, 0.30)
ABOVE = 0.10
WAYS = {
    "regions, Holm, fixed": ("regions", "holm"),
    "regions, closed e-BH, looks": ("regions", "closed-e-bh"),
    "pixels, BY, fixed": ("pixels", "by"),
    "pixels, e-BH, looks": ("pixels", "e-bh"),
}


def needed(values: np.ndarray, threshold: float, method: str) -> dict[Any, int]:
    """Number of samples at which each share of the features (last axis) was first undecided, or was marked "above"."""
    any_time, terms = "e-bh" in method, metfa.Terms(threshold, 0.05, method)
    above, below = (np.cumsum(side, axis=0, dtype=np.int32) for side in (values > threshold, values < threshold))
    found: dict[Any, int] = {}
    for n in looks(6, len(values)) if any_time else range(5, len(values) + 1):
        counts = histograms(above[n - 1 : n], below[n - 1 : n], n)
        least, _ = least_counts(*counts, terms, any_time=any_time)
        if counts[0][least:].sum() >= ABOVE * values.shape[1]:
            found.setdefault("above", n)
        left = undecided_share(*counts, terms, any_time=any_time)
        for share in SHARES:
            if left <= share:
                found.setdefault(share, n)
    return found


def measure(name: str, explainer: Any, pictures: dict[str, torch.Tensor], most: int) -> None:
    found: dict[str, list[dict[Any, int]]] = {way: [] for way in WAYS}
    for number, pixels in enumerate(pictures.values()):
        sample = metfa.explain(explainer, pixels, noise=NOISE, n_samples=most, rng=0, batch_size=10)
        other = metfa.explain(explainer, pixels, list(sample.target), noise=NOISE, n_samples=SPLIT, rng=1)
        pooled = sample.over(metfa.regions.superpixels(sample, 50), against="rest")
        given = float(other.threshold(metfa.stats.jenks)[0])
        for way, (kind, method) in WAYS.items():
            used, threshold = (pooled, 0.0) if kind == "regions" else (sample, given)
            found[way].append(needed(used.values[:, 0].reshape(most, -1), threshold, method))
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
            ratios = [a[share] / b[share] for a, b in zip(few, many, strict=True) if share in a and share in b]
            if ratios:
                print(
                    f"    regions over pixels, {kind}: median {statistics.median(ratios):.2f} ({min(ratios):.2f} to "
                    f"{max(ratios):.2f}), {len(ratios)} photographs where both reached it"
                )


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
    seconds = []
    for _ in range(9):
        start = time.perf_counter()
        sample.over(regions)
        seconds.append(time.perf_counter() - start)
    print(f"over 50 regions, 50 samples, 224 x 224: {1e3 * statistics.median(seconds):.0f} ms (target 50)", flush=True)


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
