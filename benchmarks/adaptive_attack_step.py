"""Time of a step of an attacker who knows the defence (N = 10): at most 12 times a step of one who does not.

The gradient through `Smoothed` is taken in chunks of noisy copies, so that memory does not grow with N. If chunks are
smaller than N, most copies are explained twice. Gradient's map is differentiated with softplus in place of ReLU.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import metfa
from benchmarks.measuring import compare, networks, raise_thresholds, synchronised
from metfa.attacks._batch import Batch, Streams, Victim
from metfa.attacks.settings import PRESETS
from metfa.calls.differentiation import weights_frozen
from metfa.explainers import LRP, Gradient


def one_step(
    model: Any, explainer: Any, pixels: torch.Tensor, target: int, defence: Any, softening: Any
) -> Callable[[], Any]:
    """Loss and gradient in the middle of an attack."""
    rows, columns = pixels.shape[2:]
    height = np.hypot(*np.mgrid[-1 : 1 : 1j * rows, -1 : 1 : 1j * columns])
    with torch.no_grad():
        scores = model(pixels)
    classes = torch.tensor([target], device=pixels.device)
    batch = Batch(
        Victim.of(model, explainer, defence),
        replace(PRESETS["dombrowski"], softening=softening),
        "nothing" if defence is None else "defence",
        pixels,
        scores,
        torch.from_numpy((height < 0.5)[None]).to(pixels),
        classes,
        classes,
        Streams.of(pixels, 0),
    )
    objective = batch.objective
    return synchronised(lambda: objective(pixels, 0, 0.5))


def main(options: argparse.Namespace) -> None:
    raise_thresholds(raised=options.raised)
    pixels, models = networks()
    pixels = pixels.to(options.device)
    noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
    for name, (model, target) in models.items():
        model = model.to(options.device)
        for explain in (Gradient, LRP):
            explainer = explain(model)
            softening = "softplus" if explain is Gradient else None
            steps = []
            with weights_frozen(model):
                for batch_size in (None, *options.chunks):
                    defence = None
                    if batch_size is not None:
                        defence = metfa.Smoothed(explainer, noise=noise, n_samples=options.n, batch_size=batch_size)
                    steps.append(one_step(model, explainer, pixels, target, defence, softening))
                for batch_size, step in zip(options.chunks, steps[1:], strict=True):
                    print(f"{name}, {explain.__name__}, N = {options.n} in chunks of {batch_size}, {options.device}:")
                    compare(("  adaptive step", "vanilla step"), step, steps[0], rounds=options.rounds, target=12)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--chunks", type=int, nargs="*", default=[5, 10])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--raised", action="store_true", help="raise glibc's thresholds first")
    main(parser.parse_args())
