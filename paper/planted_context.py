"""Does MeTFA find a context that is needed, and no context where none is needed?

This is not in the paper. Digits lie on textures, and one texture, grass, comes only with the digit 3
(``examples/planted_context.py``); GridSaliency, P = U(-0.1, 0.1), N = 10. Which digit needs context (images), and which
pixels are the grass (pixels)?

    python -m paper.planted_context
"""

import argparse
from functools import partial

import numpy as np
import torch
from examples import planted_context
from sklearn.metrics import roc_auc_score

from metfa import stats
from metfa.explainers import Blur, mean_colour
from metfa.segmentation import ContextExplanation, GridSaliency, explain_context, predicted_region

BASELINES = {"mean": mean_colour, "blur": Blur(10.0), "grey": 0.5}
MAPS = ("vanilla", "mean", "smoothed", "lower bound")


def maps_of(one: ContextExplanation) -> dict[str, np.ndarray]:
    """Context scores of an object, (pixels,)."""
    of_context = one.of_context
    return {
        "vanilla": of_context.vanilla[0],
        "mean": of_context.mean()[0],
        "smoothed": of_context.smoothed()[0],
        "lower bound": of_context.confidence_interval().low[0],
    }


def explained(options: argparse.Namespace, network: torch.nn.Module, design, digit: int) -> list[tuple]:
    """Explanations of images of a digit, with their grass; images where the network does not find it are left out."""
    rng = np.random.default_rng(options.seed + 1000)
    scenes = design.draw(options.images, rng, "planted", digit=digit)
    settings = {"grid": options.grid, "l1_weight": options.l1_weight, "baseline": BASELINES[options.baseline]}
    explainer = partial(GridSaliency, **settings)
    found = []
    for image, target, grass in zip(scenes.images, scenes.target, scenes.grass, strict=True):
        try:
            region = predicted_region(network, image, int(target))
        except ValueError:
            continue
        if region.sum() < 20:
            continue
        one = explain_context(
            network, image, int(target), region=region, method=explainer, min_pixels=1, n_samples=10, rng=0
        )
        found.append((one, grass.numpy()[~one.region]))
    return found


def shown(found: dict[int, list[tuple]], biased: int, threshold: float) -> None:
    """Detection by image and by pixel, and the marks where no context is needed."""
    needy = [digit == biased for digit, ones in found.items() for _ in ones]
    print(f"{'map':14}{'AUC of images':>16}{'AUC of pixels':>18}{'3, grass':>12}{'3, rest':>12}{'others':>12}")
    for name in MAPS:
        means, pixels, levels = [], [], {"grass": [], "rest": [], "others": []}
        for digit, ones in found.items():
            for one, grass in ones:
                scores = maps_of(one)[name]
                means.append(scores.mean())
                if digit != biased:
                    levels["others"].append(scores.mean())
                    continue
                levels["grass"].append(scores[grass].mean())
                levels["rest"].append(scores[~grass].mean())
                pixels.append(roc_auc_score(grass, scores))
        figures = "".join(f"{np.mean(values):12.3f}" for values in levels.values())
        error = np.std(pixels, ddof=1) / np.sqrt(len(pixels))
        print(f"{name:14}{roc_auc_score(needy, means):16.3f}{np.mean(pixels):11.3f} ± {error:.3f}{figures}")
    for rule, cut in (
        (f"threshold {threshold:g}", lambda _: threshold),
        ("natural break", lambda one: one.threshold(stats.jenks)),
    ):
        shares = {"vanilla": {}, "significant": {}}
        for digit, ones in found.items():
            for one, grass in ones:
                h = cut(one)
                for name, marked in (("vanilla", one.above(h)), ("significant", one.significant(h))):
                    marked = marked[~one.region]
                    places = {"3, grass": grass, "3, rest": ~grass} if digit == biased else {"others": grass | ~grass}
                    for place, where in places.items():
                        shares[name].setdefault(place, []).append(marked[where].mean())
                    any_of = "3, images with a mark" if digit == biased else "others, images with a mark"
                    shares[name].setdefault(any_of, []).append(float(marked.any()))
        for name, places in shares.items():
            print(f"{rule}, {name}: " + ", ".join(f"{place} {np.mean(values):.3f}" for place, values in places.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", help="file of examples/planted_context.py; by default the small one is trained")
    parser.add_argument("--unbiased", action="store_true", help="train on textures that do not depend on the digit")
    parser.add_argument("--seed", type=int, default=0, help="of the small network and of the images")
    parser.add_argument("--images", type=int, default=30, help="of each digit")
    parser.add_argument("--baseline", choices=BASELINES, default="blur")
    parser.add_argument("--grid", type=int, default=4)
    parser.add_argument("--l1-weight", type=float, default=0.3)
    parser.add_argument("--threshold", type=float, default=0.3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.network is None:
        design, context = planted_context.SMALL, "independent" if options.unbiased else "planted"
        network = planted_context.train(design, context, seed=options.seed, **planted_context.SMALL_TRAINING)
    else:
        network, design = planted_context.load(options.network)
    for row, values in planted_context.check(network, design).items():
        print(f"mean IoU, {row}: " + ", ".join(f"{name} {value:.2f}" for name, value in values.items()))
    found = {digit: explained(options, network, design, digit) for digit in design.digits}
    print("images explained: " + ", ".join(f"{digit}: {len(ones)}" for digit, ones in found.items()))
    shown(found, design.biased, options.threshold)
