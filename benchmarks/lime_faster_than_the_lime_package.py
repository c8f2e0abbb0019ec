"""LIME against the `lime` package: 1000 perturbations, the same network, the same segments, the same ridge.

The package's classifier is contiguous float32 under `no_grad`, in the package's batches of 10. Its segmentation
function does quickshift once for each explanation, as ours does, so both sides pay for it. Ours runs on the network as
it is, and on a copy with folded batch normalisation and with weights and images in channels-last. Forward passes take
most of the time on both sides, so layout, batch size and glibc's malloc thresholds decide. Both are timed with the
default thresholds and, in a second process, with raised thresholds.
"""

import argparse
import functools
import subprocess
import sys
from importlib.metadata import version
from itertools import combinations, product

import numpy as np
import torch
from lime import lime_image
from skimage.segmentation import quickshift

from benchmarks.measuring import compare, networks, raise_thresholds, ways
from metfa.explainers.lime import LIME

lime_image.tqdm = functools.partial(lime_image.tqdm, disable=True)  # turns off its progress bar


def segments(image: np.ndarray) -> np.ndarray:
    return quickshift(image.astype(np.float64), kernel_size=4, max_dist=200, ratio=0.2, rng=42)


def package(model, pixels, target, n, seed) -> np.ndarray:
    """The package's weight of each segment."""

    def classify(images: np.ndarray) -> np.ndarray:
        batch = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
        with torch.no_grad():
            return model(batch).softmax(1).numpy()

    explanation = lime_image.LimeImageExplainer(random_state=seed).explain_instance(
        pixels[0].permute(1, 2, 0).numpy(),
        classify,
        labels=(target,),
        top_labels=None,
        num_samples=n,
        segmentation_fn=segments,
        random_seed=0,
    )
    return np.array([weight for _, weight in sorted(explanation.local_exp[target])])


def explainers(model, pixels, n) -> dict[str, LIME]:
    """Our explainers, by the way in which they ask."""
    settings = {"n_perturbations": n, "segmentation": segments, "n_segments_shown": None, "scale": False}
    return {way: LIME(called, **settings) for way, called in ways(model, pixels).items()}


def main(n: int, rounds: int, *, raised: bool) -> None:
    raise_thresholds(raised=raised)
    pixels, models = networks()
    for name, (model, target) in models.items():
        print(f"{name}, {n} perturbations, {segments(pixels[0].permute(1, 2, 0).numpy()).max() + 1} segments:")
        theirs = functools.partial(package, model, pixels, target, n, 0)
        for way, explainer in explainers(model, pixels, n).items():
            ours = functools.partial(explainer, pixels, target, rngs=[np.random.default_rng(0)])
            compare((f"LIME, {way}", "lime"), ours, theirs, rounds=rounds, target=0.70)
        if not raised:
            weights(model, pixels, target, n)


def weights(model, pixels, target, n) -> None:
    """Show that our maps differ from the package's as much as the package's differ from each other."""

    def coefficients(explainer: LIME, seed: int) -> np.ndarray:
        return explainer.fit(pixels, target, rngs=[np.random.default_rng(seed)])[0][0].coefficients

    single, *_, fastest = explainers(model, pixels, n).values()
    theirs = [package(model, pixels, target, n, seed) for seed in range(3)]
    ours = [coefficients(single, seed) for seed in range(3)]
    strength = np.mean(np.abs(theirs))

    def difference(pairs) -> float:
        return float(np.mean([np.abs(a - b).mean() for a, b in pairs]) / strength)

    print(
        "mean absolute difference of the segments' weights over their mean size: "
        f"lime to lime {difference(combinations(theirs, 2)):.4f}, "
        f"ours to ours {difference(combinations(ours, 2)):.4f}, "
        f"ours to lime {difference(product(ours, theirs)):.4f} (three runs each); "
        f"to the fastest way, same draws {difference([(ours[0], coefficients(fastest, 0))]):.4f}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-perturbations", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--raised", action="store_true", help="raise glibc's thresholds first")
    options = parser.parse_args()
    if not options.raised:
        print(f"torch {torch.__version__}, lime {version('lime')}, scikit-image {version('scikit-image')}")
    main(options.n_perturbations, options.rounds, raised=options.raised)
    if not options.raised:
        sizes = ["--n-perturbations", str(options.n_perturbations), "--rounds", str(options.rounds)]
        command = [sys.executable, "-m", "benchmarks.lime_faster_than_the_lime_package", "--raised", *sizes]
        subprocess.run(command, check=True)
