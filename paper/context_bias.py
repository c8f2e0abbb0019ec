"""Table on context bias: how much context of tree, bicyclist and car is significant, and whether it is enough.

The paper uses PSPNet (ResNet-50) on Cityscapes, with the classes tree, rider and car and 100 images each (segmentations
of more than 600 pixels); GridSaliency, P and the outer noise U(-0.1, 0.1), one-sided MeTFA, and the natural break as
threshold of both maps. It does not say what hides the context from GridSaliency. Here it is what hides it from m_f, so
that both ask the same question. Here we use an ESPNet on CamVid:

    python -m paper.context_bias --data FOLDER --weights FILE

FOLDER is the folder of `paper.road_scenes`. An object is all pixels to which the network gives the class in the clean
scene.
"""

import argparse
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

import metfa
from metfa.explainers import Blur
from metfa.metrics import robust
from metfa.segmentation import (
    ContextExplanation,
    GridSaliency,
    context_faithfulness,
    explain_context,
    predicted_region,
)
from paper import espnet
from paper.cells import cell, ratio
from paper.kept import Kept
from paper.road_scenes import CLASSES, read_scenes
from paper.setting import described, digest, natural_break, weights, with_results

BASELINES = {"black": 0.0, "blur": Blur(10.0)}
LEAST = 600  # least number of pixels of an object, as in the paper
PAPER = "the paper's, m ratio and area ratio: tree .9983 and .0198, rider .9904 and .3955, car .9915 and .0800"


def uniform(radius: float) -> metfa.noise.Uniform:
    """P, and the outer noise."""
    return metfa.noise.Uniform(radius, bounds=(0, 1))


def objects(folder: Path, network: torch.nn.Module, name: str) -> Iterator[tuple[str, torch.Tensor, np.ndarray]]:
    """Scenes, pixels and regions of a class with enough pixels, in an order drawn once."""
    target = CLASSES.index(name)
    scenes = read_scenes(folder)
    for place in np.random.default_rng(0).permutation(len(scenes)):
        pixels = scenes[place].pixels()
        try:
            region = predicted_region(network, pixels, target)
        except ValueError:  # the class is not in the scene
            continue
        if region.sum() > LEAST:
            yield scenes[place].name, pixels, region


def measured(options: argparse.Namespace, network: torch.nn.Module, name: str, until: float) -> Kept:
    """Figures of the objects of a class, kept one by one; none is begun after `until`."""
    settings = {"grid": tuple(options.grid), "n_iterations": options.iterations, "l1_weight": options.l1_weight}
    settings |= {"learning_rate": options.learning_rate, "baseline": BASELINES[options.baseline]}
    among = digest(scene.picture.read_bytes() for scene in read_scenes(options.data))
    setting = {
        "inputs": among, "model": weights(network), "class": name,
        "explainer": described(partial(GridSaliency, **settings)), "P and O_n": described(uniform(options.radius)),
        "n_samples": options.samples, "n_outer": 10, "least pixels": LEAST, "alpha": 0.05, "seed": 0,
    }  # fmt: skip
    address = "-".join(map(str, (options.radius, options.baseline, "x".join(map(str, options.grid)))))
    kept = Kept.opened(options.results / f"context-{name}-{address}.csv", setting)
    seen = 0
    for scene, pixels, region in objects(options.data, network, name):
        seen += 1
        if seen > options.objects or time.monotonic() > until:
            break
        if scene in kept.lines or options.finished:
            continue
        clock = time.process_time()
        explanation = explain_context(
            metfa.Called(network, memory_format=torch.channels_last),
            pixels,
            CLASSES.index(name),
            region=region,
            method=partial(GridSaliency, **settings),
            noise=uniform(options.radius),
            n_samples=options.samples,
            rng=0,
        )
        found = figures(network, explanation, options.radius, BASELINES[options.baseline])
        kept.add(scene, found, time.process_time() - clock)
        print(f"{kept.path.name}: {len(kept.lines)} objects", flush=True)
    return kept


def figures(network: torch.nn.Module, one: ContextExplanation, radius: float, hidden: float | Blur) -> dict[str, float]:
    """Areas of context and m_f with it, at the natural break and at 0.5; and what stands beside them."""
    clean = partial(context_faithfulness, baseline=hidden)
    judge = robust(clean, noise=uniform(radius), rng=0)
    image, rng = torch.from_numpy(np.array(one.sample.inputs)), np.random.default_rng(0)

    def robust_score(context: np.ndarray) -> float:
        return float(judge(network, image, context, one.target, region=one.region).score[0])

    def clean_score(context: np.ndarray) -> float:
        return float(clean(network, image, context, one.target, region=one.region).score[0])

    nothing, outside = np.zeros_like(one.region), ~one.region
    cut = natural_break(one.of_context.values[:, 0])
    found = {
        "flips": float(one.flip_rate or 0),
        "threshold": cut,
        "robust m_f, nothing": robust_score(nothing),
        "robust m_f, all": robust_score(outside),
        "m_f, nothing": clean_score(nothing),
    }
    for rule, threshold in (("break", cut), ("0.5", 0.5)):
        for what, context in (("significant", one.significant(threshold)), ("vanilla", one.above(threshold))):
            random = np.zeros_like(context)
            random.flat[rng.choice(np.flatnonzero(outside), size=int(context.sum()), replace=False)] = True
            found |= {
                f"{rule}, {what}, area": float(context.sum() / outside.sum()),
                f"{rule}, {what}, robust m_f": robust_score(context),
                f"{rule}, {what}, robust m_f of as many at random": robust_score(random),
                f"{rule}, {what}, m_f": clean_score(context),
            }
    return found


def shown(kept: Kept, name: str) -> None:
    """All figures, and the paper's two ratios."""
    print(f"{name}, {len(kept.lines)} objects:")
    columns = {what: np.array(kept.column(what), float) for what in next(iter(kept.lines.values()), {})}
    for what, values in columns.items():
        print(f"  {what}: {cell(values)}")
    for rule in ("break", "0.5") if columns else ():
        for what in ("robust m_f", "area"):
            parts = (columns[f"{rule}, {kind}, {what}"] for kind in ("significant", "vanilla"))
            print(f"  {rule}: ratio of {what} {ratio(*parts)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of scenes, see paper/road_scenes.py")
    parser.add_argument("--weights", type=Path, required=True, help="of the ESPNet, see paper/espnet.py")
    parser.add_argument("--classes", nargs="+", default=["tree", "bicyclist", "car"])
    parser.add_argument("--objects", type=int, default=100, help="at most so many of each class")
    parser.add_argument("--radius", type=float, default=0.1, help="of P and the outer noise; the paper's is 0.1")
    parser.add_argument("--samples", type=int, default=10, help="the paper's N")
    parser.add_argument("--baseline", choices=list(BASELINES), default="black")
    parser.add_argument("--grid", type=int, nargs=2, default=(6, 8), metavar=("ROWS", "COLUMNS"))
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--l1-weight", type=float, default=0.3)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--threads", type=int, default=1)
    with_results(parser)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    metfa.allocator.keep_freed_memory()
    network = espnet.load(options.weights)
    until = time.monotonic() + 3600 * options.hours
    for name in options.classes:
        shown(measured(options, network, name, until), name)
    print(PAPER)
