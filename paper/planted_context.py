"""Does MeTFA find a context that is needed, and no context where none is needed?

This is not in the paper. Digits lie on textures, and one texture, grass, comes only with the digit 3
(``examples/planted_context.py``); GridSaliency, P = U(-0.1, 0.1), N = 10. Which digit needs context (images), and which
pixels are the grass (pixels)? A small network is trained for each seed, and one on textures that do not depend on the
digit. With one thread, the same machine trains the same networks again.

    python -m paper.planted_context
"""

import argparse
import time
from functools import partial

import numpy as np
import torch
from examples import planted_context
from sklearn.metrics import roc_auc_score

import metfa
from metfa.explainers import Blur
from metfa.segmentation import ContextExplanation, GridSaliency, explain_context, predicted_region
from paper.kept import Kept
from paper.setting import described, weights, with_results

__all__ = ["BASELINES", "MAPS", "TRAININGS", "WAYS"]

BASELINES = {"blur": Blur(10.0), "grey": 0.5}
MAPS = ("vanilla", "mean", "smoothed", "lower bound")
WAYS = ("vanilla", "significant", "as many by vanilla", "as many by mean")
TRAININGS = (*((seed, "planted") for seed in range(6)), (0, "independent"))
DESIGN = planted_context.SMALL
THRESHOLD, LEAST, N = 0.3, 20, 10
NOISE = metfa.noise.Uniform(0.1, bounds=(0, 1))


def figures(one: ContextExplanation, grass: np.ndarray, *, needed: bool) -> dict[str, float | str]:
    """Mean score and grass found by each map, and what is marked; `grass` is of the pixels of the context."""
    of_context = one.of_context
    maps = {
        "vanilla": of_context.vanilla[0], "mean": of_context.mean()[0], "smoothed": of_context.smoothed()[0],
        "lower bound": of_context.confidence_interval().low[0],
    }  # fmt: skip
    found: dict[str, float | str] = {"needed": float(needed)}
    for name, scores in maps.items():
        found[f"{name}, mean"] = float(scores.mean())
        found[f"{name}, AUC"] = float(roc_auc_score(grass, scores)) if needed else "no grass"
    significant = one.significant(THRESHOLD)[~one.region]
    marked = {"vanilla": one.above(THRESHOLD)[~one.region], "significant": significant}
    for name in MAPS[:2]:
        best = np.argsort(-maps[name], kind="stable")[: int(significant.sum())]
        marked[f"as many by {name}"] = np.isin(np.arange(len(grass)), best)
    for way in WAYS:
        found[f"{way}, grass"] = float(marked[way][grass].mean()) if needed else "no grass"
        found[f"{way}, rest"] = float(marked[way][~grass].mean()) if needed else float(marked[way].mean())
        found[f"{way}, any"] = float(marked[way].any())
    return found


def checked(options: argparse.Namespace, network: torch.nn.Module, seed: int, context: str) -> None:
    """Mean IoU of the network on 3s and on other digits, with grass and without: does it need the grass?"""
    kept = Kept.opened(options.results / f"planted-network-{seed}-{context}.csv", {"model": weights(network)})
    for row, values in planted_context.check(network, DESIGN).items():
        if row not in kept.lines:
            kept.add(row, values, 0)


def measured(options: argparse.Namespace, network: torch.nn.Module, name: str, baseline: str, until: float) -> Kept:
    """Figures of the images of each digit by one network, kept image by image; none is begun after `until`."""
    explainer, seed = partial(GridSaliency, baseline=BASELINES[baseline]), int(name.partition("-")[0])
    setting = {"model": weights(network), "explainer": described(explainer), "P": described(NOISE), "n_samples": N,
               "threshold": THRESHOLD, "least pixels": LEAST}  # fmt: skip
    kept = Kept.opened(options.results / f"planted-context-{name}-{baseline}.csv", setting)
    for digit in DESIGN.digits:
        scenes = DESIGN.draw(options.images, np.random.default_rng([seed, 1000 + digit]), "planted", digit=digit)
        for place, (image, target, grass) in enumerate(zip(scenes.images, scenes.target, scenes.grass, strict=True)):
            unit = f"digit {digit}, image {place}"
            if unit in kept.lines or time.monotonic() > until:
                continue
            try:
                region = predicted_region(network, image, int(target))
            except ValueError:  # the network does not find the digit
                continue
            if region.sum() < LEAST:
                continue
            clock = time.process_time()
            one = explain_context(
                network, image, int(target), region=region, method=explainer, noise=NOISE, min_pixels=1, n_samples=N,
                batch_size=1, rng=0,
            )  # fmt: skip
            found = figures(one, grass.numpy()[~one.region], needed=digit == DESIGN.biased)
            kept.add(unit, found, time.process_time() - clock)
    print(f"{kept.path.name}: {len(kept.lines)} images", flush=True)
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=20, help="of each digit; those that are not found are left out")
    with_results(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    metfa.allocator.keep_freed_memory()
    until = time.monotonic() + 3600 * options.hours
    for seed, context in TRAININGS:
        if options.finished or time.monotonic() > until:
            break
        network = planted_context.train(DESIGN, context, seed=seed, **planted_context.SMALL_TRAINING)
        checked(options, network, seed, context)
        for baseline in BASELINES:
            measured(options, network, f"{seed}-{context}", baseline, until)
