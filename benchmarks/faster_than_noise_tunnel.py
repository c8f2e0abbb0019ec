"""`explain` with Gradient against Captum's NoiseTunnel over Saliency: same N, same batch, same network.

NoiseTunnel returns only the mean of |gradient|. `explain` keeps all samples, scales them, and includes the vanilla map
and the clean prediction. NoiseTunnel's time depends on glibc's mmap and trim thresholds, because malloc returns the
pages of the activations after every batch. So both sides are timed with the default thresholds and, in a second
process, with raised thresholds.
"""

import argparse
import subprocess
import sys

import captum
import torch
from captum.attr import NoiseTunnel, Saliency

import metfa
from benchmarks.measuring import compare, photograph, raise_thresholds, ways

LIMITS = {"out of the box": 0.83, "exact": None, "bfloat16": 0.60}


def main(rounds: int, *, raised: bool) -> None:
    raise_thresholds(raised=raised)
    model, pixels = photograph()
    noise = metfa.noise.Uniform(0.1)
    with torch.no_grad():
        target = int(model(pixels).argmax())
    tunnel = NoiseTunnel(Saliency(model))

    def theirs() -> None:
        tunnel.attribute(pixels, target=target, nt_samples=50, nt_samples_batch_size=10, stdevs=0.1)

    for name, called in ways(model, pixels).items():
        explainer = metfa.explainers.Gradient(called)

        def ours(explainer: object = explainer) -> None:
            metfa.explain(explainer, pixels, noise=noise, n_samples=50, batch_size=10, rng=0)

        compare((f"metfa.explain, {name}", "NoiseTunnel, float32"), ours, theirs, rounds=rounds, target=LIMITS[name])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--raised", action="store_true", help="raise glibc's thresholds first")
    options = parser.parse_args()
    if not options.raised:
        print(f"torch {torch.__version__}, captum {captum.__version__}")
    main(options.rounds, raised=options.raised)
    if not options.raised:
        again = [
            sys.executable,
            "-m",
            "benchmarks.faster_than_noise_tunnel",
            "--raised",
            "--rounds",
            str(options.rounds),
        ]
        sys.exit(subprocess.run(again, check=False).returncode)
