"""`explain` on a volume of 64 x 128 x 128 voxels: time against a bare loop, and peak memory.

Gradient, N = 50, Gaussian noise, one volume a batch. The network is that of the example of CT scans of Keras
(``3D_image_classification``), with a quarter of its filters: four convolutions, each followed by a pooling. Both sides
include the clean prediction and the vanilla map; the bare loop draws no noise, keeps no maps and checks nothing. The
peak is of the resident anonymous memory above the start, with the 50 maps of 4 MiB in it, in a process of its own.
"""

import argparse
import subprocess
import sys

import torch
from torch import nn

import metfa
from benchmarks.measuring import compare, peak_during, raise_thresholds

SIZE = (64, 128, 128)
LIMIT_OF_MEMORY = 2048  # MiB


def network() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers: list[nn.Module] = []
        for before, after in ((1, 16), (16, 16), (16, 32), (32, 64)):
            layers += [nn.Conv3d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.BatchNorm3d(after)]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 4)).eval()


def main(rounds: int, *, memory: bool) -> None:
    raise_thresholds(raised=True)
    model = network()
    volume = torch.rand(1, 1, *SIZE, generator=torch.Generator().manual_seed(0))

    def ours() -> None:
        noise = metfa.noise.Gaussian(0.1)
        metfa.explain(metfa.explainers.Gradient(model), volume, noise=noise, n_samples=50, batch_size=1, rng=0)

    def gradient(batch: torch.Tensor, target: int) -> torch.Tensor:
        leaf = batch.requires_grad_()
        return torch.autograd.grad(model(leaf)[:, target].sum(), leaf)[0]

    def bare() -> None:
        model.requires_grad_(False)
        with torch.no_grad():
            target = int(model(volume).argmax())
        for _ in range(51):
            gradient(volume.clone(), target)

    if memory:
        print(f"peak of metfa.explain: {peak_during(ours):.0f} MiB, target at most {LIMIT_OF_MEMORY}")
    else:
        compare(("metfa.explain", "bare loop"), ours, bare, rounds=rounds, target=1.10)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", action="store_true", help="measure memory, not time")
    options = parser.parse_args()
    main(options.rounds, memory=options.memory)
    if not options.memory:
        again = [sys.executable, "-m", "benchmarks.volumes_fit_in_two_gigabytes", "--memory"]
        sys.exit(subprocess.run(again, check=False).returncode)
