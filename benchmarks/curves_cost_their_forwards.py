"""Insertion and deletion of one 224 x 224 map, 100 steps each: against the bare forwards, and against Quantus.

The bare forwards are 200 images in batches of 16, as many as both curves need. Quantus's pixel flipping deletes 512
pixels a step in 98 steps, because the number of pixels must be a multiple of the pixels a step; ours deletes in as many
steps. Quantus runs one step at a time, so a forward pass has one image for one map and ten images for ten maps. Both
are timed.
"""

import argparse
import contextlib
import warnings
from functools import partial
from importlib.metadata import version

import numpy as np
import torch

from benchmarks.measuring import bare_forwards, compare, networks, raise_thresholds, ways
from metfa import metrics
from metfa.explainers import Gradient


def flipping():
    """Quantus's metric without its average; the curve takes the time."""
    with contextlib.redirect_stdout(None), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import quantus

        return quantus.PixelFlipping(
            features_in_step=512, perturb_baseline="black", abs=False, normalise=False, display_progressbar=False,
            disable_warnings=True, return_auc_per_sample=False,
        )  # fmt: skip


def main(rounds: int, *, raised: bool) -> None:
    raise_thresholds(raised=raised)
    pixels, models = networks()
    for name, (model, target) in models.items():
        print(f"{name}:")
        maps = Gradient(model)(pixels, target)[0]
        for way, called in ways(model, pixels).items():
            compare(
                (f"insertion and deletion, {way}", "bare forwards"),
                partial(metrics.overall, called, pixels, maps, target),
                partial(bare_forwards, called, pixels, 200),
                rounds=rounds, target=1.10,
            )  # fmt: skip
        for n in (1, 10):
            images, many = pixels.repeat(n, 1, 1, 1), maps.repeat(n, 1, 1)
            theirs, x, y, a = flipping(), images.numpy(), np.full(n, target), many[:, None].numpy()

            def quantus(theirs=theirs, x=x, y=y, a=a, model=model) -> None:
                theirs(model=model, x_batch=x, y_batch=y, a_batch=a, softmax=True, device="cpu", batch_size=len(x))

            compare(
                (f"deletion of {n} map(s), as the model is", "Quantus"),
                partial(metrics.deletion, model, images, many, target, steps=98),
                quantus, rounds=max(rounds // (2 if n > 1 else 1), 1), target=0.7,
            )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--raised", action="store_true", help="raise glibc's thresholds first")
    options = parser.parse_args()
    print(f"torch {torch.__version__}, quantus {version('quantus')}")
    main(options.rounds, raised=options.raised)
