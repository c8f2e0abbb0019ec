"""Samples needed until 10, 20 and 30 % are undecided: of 50 superpixels (against the rest), and of the pixels.

And the samples until 10 % are marked above: "more than the rest", or important. Most pixels lie far below a natural
break, so that few samples call them unimportant; what a person looks for is above.

Regions are decided by Holm at a fixed N, and by closed e-BH with looks 10 % apart. Pixels are decided by BY at a fixed
N, and by e-BH with looks, about the natural break of all scores of ten samples of another seed. A fixed N is the
smallest that is enough, as if somebody had known it. Target: regions need a fifth of the pixels' samples or less. First
it prints the time of ``sample.over`` for 50 regions, 50 samples and 224 x 224 pixels (target: 50 ms).

    python -m benchmarks.regions_need_few_samples --data FOLDER --photographs 20 --results regions.jsonl

FOLDER holds photographs and ``index.csv``; without it, the photographs are scikit-image's coffee and cat. Gradient is
asked first, then RISE of 200 masks, which takes hours: each photograph is one line of the file of results as soon as it
is measured, and a repeated command goes on after the last of them. The published figures are in
``results/regions_need_few_samples.jsonl``.
"""

import argparse
import json
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


Found = dict[str, dict[Any, int]]  # samples that each way needed for each share of one photograph


def measure(name: str, explainer: Any, pictures: dict[str, torch.Tensor], most: int, results: Path | None) -> None:
    """Measure each photograph that is not in the file of results, and print all of them."""
    found: dict[str, list[dict[Any, int]]] = {way: [] for way in WAYS}
    for number, (picture, pixels) in enumerate(pictures.items()):
        key = [name, picture, most]
        one = kept(results, key)
        if one is None:
            one = of_one(explainer, pixels, most)
            keep(results, key, one)
        for way in WAYS:
            found[way].append(one[way])
        print(f"{name}, photograph {number}: {one}", flush=True)
    report(name, found, len(pictures), most)


def of_one(explainer: Any, pixels: torch.Tensor, most: int) -> Found:
    """Samples that each way needs on one photograph."""
    sample = metfa.explain(explainer, pixels, noise=NOISE, n_samples=most, rng=0, batch_size=10)
    other = metfa.explain(explainer, pixels, list(sample.target), noise=NOISE, n_samples=SPLIT, rng=1)
    pooled = sample.over(metfa.regions.superpixels(sample, 50), against="rest")
    given = float(other.threshold(metfa.stats.jenks)[0])
    found = {}
    for way, (kind, method) in WAYS.items():
        used, threshold = (pooled, 0.0) if kind == "regions" else (sample, given)
        schedule = looks(6, most) if "looks" in way else range(5, most + 1)
        found[way] = needed(used.values[:, 0], threshold, schedule, method, shares=SHARES)
    return found


def kept(results: Path | None, key: list[Any]) -> Found | None:
    """What a file of results says of one photograph; None if it was not measured."""
    lines = results.read_text().splitlines() if results is not None and results.exists() else []
    for line in lines:
        kept_key, found = json.loads(line)
        if kept_key == key:
            return {way: {share if share == "above" else float(share): n for share, n in of.items()}
                    for way, of in found.items()}  # fmt: skip
    return None


def keep(results: Path | None, key: list[Any], found: Found) -> None:
    if results is not None:
        with results.open("a") as file:
            file.write(json.dumps([key, found]) + "\n")


def report(name: str, found: dict[str, list[dict[Any, int]]], n_pictures: int, most: int) -> None:
    print(f"\n{name}, {n_pictures} photographs, N at most {most}")
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
    parser.add_argument("--rise", type=int, metavar="PHOTOGRAPHS", help="RISE on so many; by default on all")
    parser.add_argument("--rise-samples", type=int, default=60)
    parser.add_argument("--results", type=Path, help="file of results, from which a repeated command goes on")
    options = parser.parse_args()
    metfa.allocator.keep_freed_memory()
    over()
    loaded = metfa.models.load("efficientnet-lite0")
    pictures = photographs(options.data, loaded.preprocess, options.photographs)
    measure("Gradient", Gradient(loaded.module), pictures, options.samples, options.results)
    some = dict(list(pictures.items())[: options.rise])
    if some:
        asked = metfa.Called(loaded.module, fast="exact")  # the same scores in three fifths of the time
        measure("RISE, 200 masks", RISE(asked, n_masks=200), some, options.rise_samples, options.results)
