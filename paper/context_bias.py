"""Table on context bias: how much context of tree, bicyclist and car is significant, and whether it is enough.

The paper uses PSPNet (ResNet-50) on Cityscapes, with the classes tree, rider and car and 100 images each (segmentations
of more than 600 pixels); GridSaliency, P and the outer noise U(-0.1, 0.1), one-sided MeTFA, and the natural break as
threshold of both maps. Here we use an ESPNet on CamVid:

    python -m paper.context_bias --data FOLDER --weights FILE

FOLDER is the folder of `paper.road_scenes`. An object is all pixels to which the network gives the class in the clean
scene.
"""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

import metfa
from metfa import stats
from metfa.metrics import robust
from metfa.segmentation import (
    ContextExplanation,
    GridSaliency,
    context_faithfulness,
    context_table,
    explain_context,
    load_context,
    predicted_region,
)
from paper import espnet
from paper.road_scenes import CLASSES, read_scenes

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


def explained(options: argparse.Namespace, network: torch.nn.Module, name: str) -> list[ContextExplanation]:
    """Explanations of the objects of a class; those that are in the store are read from there."""
    settings = {"grid": tuple(options.grid), "n_iterations": options.iterations, "l1_weight": options.l1_weight}
    settings["learning_rate"] = options.learning_rate
    if options.baseline == "black":
        settings["baseline"] = 0.0
    address = "-".join(map(str, (options.radius, options.samples, options.baseline, *settings.values())))
    found = []
    for scene, pixels, region in objects(options.data, network, name):
        if len(found) == options.objects:
            break
        folder = options.store / f"{scene}-{name}-{address}"
        if folder.exists():
            found.append(load_context(folder))
            continue
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
        explanation.save(folder)
        found.append(explanation)
        print(f"{name}: {len(found)} of {options.objects}, {explanation.provenance['seconds']:.0f} s", flush=True)
    return found


def shown(network: torch.nn.Module, name: str, found: list[ContextExplanation], radius: float) -> None:
    """Figures for which the table has no room: other contexts of the object, and the effect of the noise on it."""
    judge = robust(context_faithfulness, noise=uniform(radius), rng=0)
    rng = np.random.default_rng(0)
    figures: dict[str, list[float]] = {}
    for one in found:
        significant = one.significant(stats.jenks)
        random = np.zeros_like(significant)
        places = np.flatnonzero(~one.region)
        random.flat[rng.choice(places, size=int(significant.sum()), replace=False)] = True
        contexts = {
            "none": np.zeros_like(significant),
            "significant": significant,
            "as many pixels at random": random,
            "vanilla": one.above(),
            "all": ~one.region,
        }
        image = torch.from_numpy(np.array(one.sample.inputs))
        for what, context in contexts.items():
            score = judge(network, image, context, one.target, region=one.region).score[0]
            figures.setdefault(f"robust m_f, {what}", []).append(float(score))
        figures.setdefault("m_f of the clean scene, none", []).append(clean(network, image, contexts["none"], one))
        figures.setdefault("m_f of the clean scene, significant", []).append(clean(network, image, significant, one))
        figures.setdefault("m_f of the clean scene, vanilla", []).append(
            clean(network, image, contexts["vanilla"], one)
        )
        figures.setdefault("best class of the object changes under P", []).append(float(one.flip_rate or 0))
        figures.setdefault("threshold", []).append(one.threshold(stats.jenks))
        figures.setdefault("objects with significant context", []).append(float(significant.any()))
    print(f"{name}:")
    for what, values in figures.items():
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
        print(f"  {what}: {np.mean(values):.4f} ± {error:.4f}")


def clean(network: torch.nn.Module, image: torch.Tensor, context: np.ndarray, one: ContextExplanation) -> float:
    """m_f without noise."""
    return float(context_faithfulness(network, image, context, one.target, region=one.region).score[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of scenes, see paper/road_scenes.py")
    parser.add_argument("--weights", type=Path, required=True, help="of the ESPNet, see paper/espnet.py")
    parser.add_argument("--classes", nargs="+", default=["tree", "bicyclist", "car"])
    parser.add_argument("--objects", type=int, default=100, help="at most so many of each class")
    parser.add_argument("--radius", type=float, default=0.1, help="of P and the outer noise; the paper's is 0.1")
    parser.add_argument("--samples", type=int, default=10, help="the paper's N")
    parser.add_argument("--baseline", choices=["blur", "black"], default="blur")
    parser.add_argument("--grid", type=int, nargs=2, default=(6, 8), metavar=("ROWS", "COLUMNS"))
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--l1-weight", type=float, default=0.3)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--store", type=Path, default=Path("paper-store"), help="folder of explanations; a run resumes")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    metfa.allocator.keep_freed_memory()
    network = espnet.load(options.weights)
    explanations = {name: explained(options, network, name) for name in options.classes}
    everything = [one for found in explanations.values() for one in found]
    for title, threshold in (("natural break", stats.jenks), ("threshold 0.5", 0.5)):
        table = context_table(
            network, everything, class_names=CLASSES, threshold=threshold, noise=uniform(options.radius)
        )
        print(f"{title}:\n{table}")
    for name, found in explanations.items():
        shown(network, name, found, options.radius)
    print(PAPER)
