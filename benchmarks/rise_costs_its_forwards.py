"""RISE with 1000 masks: against its bare forwards, against the authors' recipe, and its memory.

The bare forwards are 1000 images in batches of 16, in the layout and precision in which RISE asks. The recipe is that
of `eclique/RISE`: masks by scikit-image, all of them and all masked images in memory, batches of 100, contiguous. Both
are timed with glibc's default malloc thresholds and, in a second process, with raised thresholds.
"""

import argparse
import subprocess
import sys
from itertools import combinations, product

import numpy as np
import skimage
import torch
from skimage.transform import resize

from benchmarks.measuring import bare_forwards, compare, networks, peak_during, raise_thresholds, ways
from metfa import Called
from metfa.explainers import RISE

LIMITS = {"out of the box": 0.65, "exact": 0.65, "bfloat16": 0.40}


def recipe_masks(n, side, rng, grid=8, keep=0.5) -> torch.Tensor:
    cell = -(-side // grid)
    masks = np.empty((n, 1, side, side), dtype=np.float32)
    for mask in masks:
        cells = (rng.random((grid, grid)) < keep).astype(np.float64)
        down, across = rng.integers(0, cell, 2)
        large = resize(cells, ((grid + 1) * cell,) * 2, order=1, mode="reflect", anti_aliasing=False)
        mask[0] = large[down : down + side, across : across + side]
    return torch.from_numpy(masks)


def recipe(model, pixels, target, n, seed, batch=100) -> torch.Tensor:
    masks = recipe_masks(n, pixels.shape[-1], np.random.default_rng(seed))
    with torch.no_grad():
        stack = masks * pixels
        weights = torch.cat([model(stack[k : k + batch]).softmax(1)[:, target] for k in range(0, n, batch)])
    return torch.tensordot(weights, masks[:, 0], dims=1) / n / 0.5


def difference(a, b) -> float:
    return float((a - b).abs().mean() / a.mean())


def main(n: int, rounds: int, *, raised: bool) -> None:
    raise_thresholds(raised=raised)
    pixels, models = networks()
    for name, (model, target) in models.items():
        print(f"{name}, {n} masks:")
        asked = ways(model, pixels)
        for way, called in asked.items():
            explainer = RISE(called, n_masks=n, rng=0)
            compare(
                (f"RISE, {way}", "bare forwards"),
                lambda explainer=explainer, target=target: explainer(pixels, target),
                lambda called=called: bare_forwards(called, pixels, n),
                rounds=rounds, target=1.08,
            )  # fmt: skip

        def theirs(model=model, target=target) -> None:
            recipe(model, pixels, target, n, 0)

        for way, called in asked.items():
            explainer = RISE(called, n_masks=n, rng=0)
            ours = lambda explainer=explainer, target=target: explainer(pixels, target)  # noqa: E731
            compare((f"RISE, {way}", "the recipe"), ours, theirs, rounds=max(rounds // 2, 1), target=LIMITS[way])
        if not raised:
            maps(asked, pixels, target, n)


def maps(asked, pixels, target, n) -> None:
    raw = {"n_masks": n, "scale": False}
    called, fastest = asked["out of the box"], list(asked)[-1]
    ours = [RISE(called, rng=seed, **raw)(pixels, target)[0][0] for seed in range(3)]
    low, model = RISE(asked[fastest], rng=0, **raw)(pixels, target)[0][0], called.model
    recipes = [recipe(model, pixels, target, n, seed) for seed in range(10, 13)]

    def mean_difference(pairs) -> float:
        return sum(difference(a, b) for a, b in pairs) / len(pairs)

    print(
        "mean absolute difference over the mean score: "
        f"recipe to recipe {mean_difference(list(combinations(recipes, 2))):.4f}, "
        f"ours to ours {mean_difference(list(combinations(ours, 2))):.4f}, "
        f"ours to the recipe {mean_difference(list(product(ours, recipes))):.4f} (three runs each); "
        f"out of the box to {fastest} with the same masks {difference(ours[0], low):.4f}",
        flush=True,
    )


def memory(n: int) -> None:
    pixels, models = networks()
    model, target = models["EfficientNet-Lite0"]
    explainer = RISE(Called(model, fast="exact"), n_masks=n, rng=0)
    print(f"peak memory with {n} masks: {peak_during(lambda: explainer(pixels, target)):.0f} MiB", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-masks", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--raised", action="store_true", help="raise glibc's thresholds first")
    parser.add_argument("--memory", action="store_true", help="peak memory alone")
    options = parser.parse_args()
    again = [sys.executable, "-m", "benchmarks.rise_costs_its_forwards"]
    if options.memory:
        memory(options.n_masks)
        sys.exit()
    if not options.raised:
        print(f"torch {torch.__version__}, scikit-image {skimage.__version__}")
    main(options.n_masks, options.rounds, raised=options.raised)
    if not options.raised:
        sizes = ["--n-masks", str(options.n_masks), "--rounds", str(options.rounds)]
        subprocess.run([*again, "--raised", *sizes], check=True)
        for n in (options.n_masks // 4, options.n_masks, 4 * options.n_masks):
            subprocess.run([*again, "--memory", "--n-masks", str(n)], check=True)
