"""I-GOS and MASK of ten noisy copies in one batch, against ten runs of one copy each, in the same layout.

On two cores the work of one copy already fills the machine, so the target is at most 1.10; on a GPU it is 0.5. First it
prints the time of one batch for each number of images in a pass; the default was chosen from this. The number of
iterations is cut, because all cost the same. MASK starts from 0.5, because its search for a disc (35 forward passes)
would take too large a part beside few iterations.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

import metfa
from benchmarks.measuring import compare, networks, raise_thresholds, synchronised
from metfa._base.warnings import DegenerateAttributionsWarning
from metfa.explainers.igos import IGOS
from metfa.explainers.mask import MASK


def noisy_copies(pixels: torch.Tensor, n: int) -> torch.Tensor:
    noise, rng = metfa.noise.Uniform(0.1, bounds=(0, 1)), np.random.default_rng(0)
    return torch.stack([noise(pixels[0], rng) for _ in range(n)])


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def sweep(make: Callable[..., Any], copies: torch.Tensor, target: int, sizes: Sequence[int], rounds: int) -> None:
    """Print the time of one batch for each number of images in a pass; sizes alternate, since machine speeds change."""
    runs = {size: synchronised(lambda size=size: make(batch_size=size)(copies, target)) for size in sizes}
    for run in runs.values():
        run()
    times = {size: [] for size in sizes}
    for _ in range(rounds):
        for size, run in runs.items():
            times[size].append(seconds(run))
    shown = ", ".join(f"{size}: {statistics.median(one):.3f} s" for size, one in times.items())
    print(f"  images in a pass and time of the batch: {shown}", flush=True)


def main(options: argparse.Namespace) -> None:
    raise_thresholds(raised=options.raised)
    warnings.simplefilter("ignore", DegenerateAttributionsWarning)  # maps of random weights do not matter
    on_cpu = options.device == "cpu"
    pixels, models = networks()
    copies = noisy_copies(pixels, options.copies).to(options.device)
    asked = partial(metfa.Called, fast="exact")
    for name, (model, target) in models.items():
        model = model.to(options.device)
        explainers = {
            f"I-GOS, {options.igos_iterations} iterations": lambda model=model, **more: IGOS(
                asked(model, **more), n_iterations=options.igos_iterations, n_steps=options.points, rng=0
            ),
            f"MASK, {options.mask_iterations} iterations": lambda model=model, **more: MASK(
                asked(model, **more), n_iterations=options.mask_iterations, init=0.5, rng=0
            ),
        }
        for title, make in explainers.items():
            print(f"{name}, {title}, {options.copies} copies, {options.device}:", flush=True)
            if options.sizes:
                sweep(make, copies, target, options.sizes, options.rounds)

            def together(make=make, target=target) -> None:
                make()(copies, target)

            def alone(make=make, target=target) -> None:
                for row in range(len(copies)):
                    make()(copies[row : row + 1], target)

            compare(
                ("  one batch", "one run a copy"), synchronised(together), synchronised(alone),
                rounds=options.rounds, target=1.10 if on_cpu else 0.5,
            )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--igos-iterations", type=int, default=2)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--mask-iterations", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 2, 4, 8, 16, 32], help="images in a pass to try")
    parser.add_argument("--raised", action="store_true", help="raise glibc's thresholds first")
    main(parser.parse_args())
