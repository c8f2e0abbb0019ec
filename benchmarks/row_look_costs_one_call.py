"""The look whether rows depend on each other, against the same run without it.

Gradient, N = 50, batches of 10, EfficientNet-Lite0, 224 x 224. `explain` asks for one row alone (one call more), and a
new `Called` asks its model for two rows alone, once in its life. A new one is made for every run here, so both are
counted.
The rows that pass the network are counted, too.
"""

import argparse

import torch

import metfa
from benchmarks.measuring import compare, photograph, synchronised
from metfa.sampling import loop


def main(device: str, rounds: int) -> None:
    model, pixels = photograph(device)
    noise = metfa.noise.Uniform(0.1, bounds=(0.0, 1.0))
    safe = loop.safe_batch_size
    rows = {"forwards": 0}
    counting = model.register_forward_pre_hook(lambda _, given: rows.update(forwards=rows["forwards"] + len(given[0])))

    def explained(*, looks: bool) -> None:
        called = metfa.Called(model)
        if not looks:
            called.row_look.mixes = False
            loop.safe_batch_size = lambda _, size, *__: size  # pyright: ignore[reportAttributeAccessIssue]
        metfa.explain(metfa.explainers.Gradient(called), pixels, noise=noise, n_samples=50, batch_size=10, rng=0)
        loop.safe_batch_size = safe  # pyright: ignore[reportAttributeAccessIssue]

    for looks in (False, True):
        rows.update(forwards=0)
        explained(looks=looks)
        print(f"{'with' if looks else 'without'} the look: {rows['forwards']} rows through the network")
    counting.remove()
    compare(
        ("with the look", "without"),
        synchronised(lambda: explained(looks=True)),
        synchronised(lambda: explained(looks=False)),
        rounds=rounds,
        target=1.05,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    main(options.device, options.rounds)
