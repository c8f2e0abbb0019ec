"""Peak anonymous memory of `explain(..., store=)` for N = 50 and 500, and of the bare loop (EfficientNet-Lite0).

Each figure comes from its own process. The resident anonymous memory is read every two milliseconds during the work,
and the memory before the work (imports, model, weights) is subtracted.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import metfa
from benchmarks.measuring import peak_during, photograph


def measure(what: str) -> None:
    model, pixels = photograph()
    model.requires_grad_(False)

    def bare(rounds: int) -> None:
        for _ in range(rounds):
            leaf = pixels.repeat(10, 1, 1, 1).contiguous(memory_format=torch.channels_last).requires_grad_()
            torch.autograd.grad(model(leaf)[:, 0].sum(), leaf)

    with tempfile.TemporaryDirectory() as folder:
        if what == "bare":
            print(f"bare loop of 50 batches of 10: {peak_during(lambda: bare(50)):.0f} MiB")
            return
        n_samples = int(what)
        explainer = metfa.explainers.Gradient(model)
        noise = metfa.noise.Uniform(0.1, bounds=(0.0, 1.0))

        def explain() -> None:
            metfa.explain(
                explainer, pixels, noise=noise, n_samples=n_samples, rng=0, run=metfa.Run(store=Path(folder) / "run")
            )

        print(f"explain(store=), N = {n_samples}: {peak_during(explain):.0f} MiB", end="; ")
        sample = metfa.load(Path(folder) / "run")

        def statistics() -> None:
            sample.significance_map()
            sample.confidence_interval()
            sample.smoothed()

        size = sample.values.nbytes / 2**20
        print(f"all maps of the stored sample ({size:.0f} MiB): {peak_during(statistics):.0f} MiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", help="bare, or N")
    options = parser.parse_args()
    if options.what:
        measure(options.what)
    else:
        for what in ("bare", "50", "500"):
            subprocess.run([sys.executable, "-m", "benchmarks.memory_is_flat_in_n", what], check=True)
