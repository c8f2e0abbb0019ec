"""`explain` against a bare loop of the same forward and backward passes in the same layout.

Gradient, N = 50, uniform noise of 0.1, batches of 10, EfficientNet-Lite0, 224 x 224. Both sides have channels-last
inputs and no gradients of the weights, and both include the clean prediction and the vanilla map. The bare loop draws
no noise, keeps no maps and checks nothing. Both are timed with malloc's default thresholds and, in a second process,
with raised thresholds. On a GPU they are also timed with the noise drawn in the same thread instead of ahead.
"""

import argparse
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor

import torch

import metfa
from benchmarks.measuring import compare, photograph, raise_thresholds, synchronised
from metfa.sampling import prefetch as ahead


class InTurn(ThreadPoolExecutor):
    """A pool that does the work at once, in the thread of the caller."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def main(device: str, rounds: int, *, raised: bool) -> None:
    raise_thresholds(raised=raised)
    model, pixels = photograph(device)
    explainer = metfa.explainers.Gradient(model)
    noise = metfa.noise.Uniform(0.1, bounds=(0.0, 1.0))

    def ours() -> None:
        metfa.explain(explainer, pixels, noise=noise, n_samples=50, batch_size=10, rng=0)

    def gradient(batch: torch.Tensor, target: int) -> torch.Tensor:
        leaf = batch.contiguous(memory_format=torch.channels_last).requires_grad_()
        return torch.autograd.grad(model(leaf)[:, target].sum(), leaf)[0]

    def bare() -> None:
        wanted = [parameter.requires_grad for parameter in model.parameters()]
        model.requires_grad_(False)
        with torch.no_grad():
            target = int(model(pixels).argmax())
        gradient(pixels.clone(), target)
        for _ in range(5):
            gradient(pixels.repeat(10, 1, 1, 1), target)
        for parameter, flag in zip(model.parameters(), wanted, strict=True):
            parameter.requires_grad_(flag)

    limit = 1.05 if device == "cpu" else 1.10
    compare(("metfa.explain", "bare loop"), synchronised(ours), synchronised(bare), rounds=rounds, target=limit)
    if device != "cpu":
        ahead.ThreadPoolExecutor = InTurn  # pyright: ignore[reportAttributeAccessIssue]
        names = ("metfa.explain, noise in turn", "bare loop")
        compare(names, synchronised(ours), synchronised(bare), rounds=rounds, target=None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--raised", action="store_true", help="raise glibc's thresholds first")
    options = parser.parse_args()
    main(options.device, options.rounds, raised=options.raised)
    if options.device == "cpu" and not options.raised:
        again = [sys.executable, "-m", "benchmarks.explain_adds_at_most_five_percent", "--raised", "--device", "cpu"]
        sys.exit(subprocess.run([*again, "--rounds", str(options.rounds)], check=False).returncode)
