"""Samples needed to leave 5, 10 and 20 % of a map undecided: with looks on the way, and with N known beforehand.

The false discovery rate is kept at .05, among the features called important and among those called unimportant. e-BH
and closed e-BH allow looks. They are compared with BY and BH at the smallest fixed N of each photograph, as if somebody
had known this N. The target: on the median photograph, with looks 10 % apart, e-BH with a given threshold needs at most
1.5 times as many samples as BY. The threshold is the natural break of all scores of ten samples of another seed
("given"), or of the first ten samples of the run, which are then not tested ("split").

    python -m benchmarks.looks_cost_half_more_than_hindsight --data FOLDER

FOLDER holds photographs and ``index.csv``; without it, the photographs are scikit-image's coffee and cat. Then it
prints the cost of the statistics of the rounds (target: at most 3 % of the time). It also compares the time to explain
until a share is reached with the time to explain as many samples at once: the last batch of a round may not be full.
"""

import argparse
import csv
import math
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image
from skimage import data

import metfa
from benchmarks.measuring import compare
from metfa._base.pictures import open_image
from metfa.explainers import RISE, Gradient
from metfa.results.corrections import E_VALUES
from metfa.results.families import histograms, least_counts, undecided_share
from metfa.sampling.rounds import RoundsUntil

SHARES = (0.05, 0.10, 0.20)
ABOVE = 0.10
NOISE = metfa.noise.Uniform(0.1, bounds=(0, 1))
SPLIT = 10
ALPHA = 0.05


def photographs(folder: Path | None, preprocess: Any, n: int) -> dict[str, torch.Tensor]:
    if folder is None:
        images = {"coffee": Image.fromarray(data.coffee()), "cat": Image.fromarray(data.chelsea())}
    else:
        with (folder / "index.csv").open(encoding="utf-8") as file:
            names = [row["file"] for row in csv.DictReader(file)]
        chosen = np.random.default_rng(0).permutation(len(names))[:n]
        images = {names[k]: open_image(folder / names[k]).convert("RGB") for k in chosen}
    return {name: preprocess(image)[None] for name, image in list(images.items())[:n]}


def looks(first: int, most: int, growth: float = 1.1) -> list[int]:
    rule = metfa.Until(undecided=0, threshold=0.0, growth=growth, max_samples=most)
    found = [first]
    while found[-1] < most:
        found.append(rule.after(found[-1]))
    return found


def needed(
    values: np.ndarray, threshold: float, schedule: Iterable[int], method: str, *, split: int = 0, shares=SHARES
) -> dict[Any, int]:
    """At which numbers of samples, of `schedule`, each share of the features was first undecided, or `ABOVE` "above".

    Each side is a family of its own. The first `split` samples are not tested.
    """
    terms, any_time = metfa.Terms(0.0, ALPHA, method), method in E_VALUES
    found: dict[Any, int] = {}
    above = below = np.zeros(values[0].size, int)
    counted = split
    for n in schedule:
        new = values[counted:n].reshape(n - counted, -1)
        above, below, counted = above + (new > threshold).sum(0), below + (new < threshold).sum(0), n
        counts = histograms(above, below, n - split)
        if counts[0][least_counts(*counts, terms, any_time=any_time)[0] :].sum() >= ABOVE * above.size:
            found.setdefault("above", n)
        share = undecided_share(*counts, terms, any_time=any_time)
        for asked in shares:
            if share <= asked:
                found.setdefault(asked, n)
    return found


def shown_counts(counts: list[int | None], most: int) -> str:
    known = sorted(count if count is not None else most + 1 for count in counts)
    middle = statistics.median(known)
    shown = f"more than {most}" if middle > most else f"{middle:g}"
    largest = f"more than {most}" if known[-1] > most else str(known[-1])
    return f"{shown} ({known[0]} to {largest}; {sum(count is not None for count in counts)} of {len(counts)})"


def print_ratios(what: str, ours: list[dict[Any, int]], theirs: list[dict[Any, int]], asked: Any) -> None:
    """Ratios of the samples, on all photographs where theirs were enough; inf where ours were not."""
    pairs = [(a.get(asked, math.inf), b[asked]) for a, b in zip(ours, theirs, strict=True) if asked in b]
    if pairs:
        ratios = [a / b for a, b in pairs]
        print(
            f"    {what}: median {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), "
            f"{len(ratios)} photographs"
        )


def measure(name: str, explainer: Any, pictures: dict[str, torch.Tensor], most: int, forwards: int) -> None:
    looked = {
        "e-BH, given": "e-bh",
        "closed, given": "closed-e-bh",
        "e-BH, split": "e-bh",
        "closed, split": "closed-e-bh",
    }
    ways = {"BY, fixed": "by", "BH, fixed": "bh", **looked}
    found: dict[str, list[dict[Any, int]]] = {way: [] for way in ways}
    for number, pixels in enumerate(pictures.values()):
        sample = metfa.explain(explainer, pixels, noise=NOISE, n_samples=most, rng=0, batch_size=10)
        other = metfa.explain(explainer, pixels, list(sample.target), noise=NOISE, n_samples=SPLIT, rng=1)
        given = float(other.threshold(metfa.stats.jenks)[0])
        own = float(sample.threshold(metfa.stats.jenks, split=SPLIT)[0])
        for way, method in ways.items():
            split = SPLIT if way.endswith("split") else 0
            schedule = looks(split + 6, most) if way in looked else list(range(5, most + 1))
            threshold = own if split else given
            found[way].append(needed(sample.values[:, 0], threshold, schedule, method, split=split))
        print(f"{name}, photograph {number}: { ({way: runs[-1] for way, runs in found.items()}) }", flush=True)
    print(f"\n{name}, {len(pictures)} photographs, N at most {most}; a map takes {forwards} forwards")
    for asked in SHARES:
        for way, runs in found.items():
            counts = [run.get(asked) for run in runs]
            print(f"  {asked:.0%} undecided, {way}: N = {shown_counts(counts, most)}")
        for way in looked:
            for rival in ("BY, fixed", "BH, fixed"):
                print_ratios(f"{way} over {rival}", found[way], found[rival], asked)


def overhead(explainer: Any, pixels: torch.Tensor, share: float, most: int) -> None:
    given = float(metfa.explain(explainer, pixels, noise=NOISE, n_samples=SPLIT, rng=1).threshold(metfa.stats.jenks)[0])
    rule = metfa.Until(undecided=share, threshold=given, growth=1.1, max_samples=most)

    def until() -> Any:
        return metfa.explain(explainer, pixels, noise=NOISE, n_samples=rule, rng=0)

    n = until().n_samples
    print(f"\n{n} samples, {len(until().stopping.looks)} looks")
    shares = []
    for _ in range(5):
        start, spent = time.perf_counter(), []
        with patch.object(RoundsUntil, "look", timed(RoundsUntil.look, spent)):
            until()
        shares.append(sum(spent) / (time.perf_counter() - start))
    print(f"statistics of the rounds: {statistics.median(shares):.2%} of the time, target at most 3%")
    compare(
        ("until", f"n_samples={n}"),
        until,
        lambda: metfa.explain(explainer, pixels, noise=NOISE, n_samples=n, rng=0),
        rounds=7,
        target=None,
    )


def timed(method: Any, spent: list[float]) -> Any:
    def call(*arguments: Any) -> Any:
        start = time.perf_counter()
        result = method(*arguments)
        spent.append(time.perf_counter() - start)
        return result

    return call


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of photographs and index.csv")
    parser.add_argument("--photographs", type=int, default=20)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--rise-photographs", type=int, default=2)
    parser.add_argument("--rise-samples", type=int, default=100)
    parser.add_argument("--only", choices=["gradient", "rise", "overhead"], nargs="+")
    options = parser.parse_args()
    wanted = options.only or ["gradient", "rise", "overhead"]
    metfa.allocator.keep_freed_memory()
    loaded = metfa.models.load("efficientnet-lite0")
    pictures = photographs(options.data, loaded.preprocess, options.photographs)
    gradient, rise = Gradient(loaded.module), RISE(loaded.module, n_masks=200)
    if "gradient" in wanted:
        measure("Gradient", gradient, pictures, options.samples, 1)
    if "rise" in wanted:
        few = dict(list(pictures.items())[: options.rise_photographs])
        measure("RISE, 200 masks", rise, few, options.rise_samples, 200)
    if "overhead" in wanted:
        overhead(gradient, next(iter(pictures.values())), 0.10, options.samples)
