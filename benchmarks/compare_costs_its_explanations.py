"""`metfa.compare` of two explainers against two calls of `metfa.explain` with the same samples, A B A B.

Gradient of two networks, uniform noise of 0.1, batches of 10, 224 x 224: with a fixed number of samples; and with a
rule that looks at the differences of 49 regions, against two calls with as many samples and looks at 49 regions each.
`compare` also subtracts. Then a table: a thousand rows of twenty columns and a linear model, where there is nearly
nothing to explain and so the most to lose.
"""

import argparse

import numpy as np

import metfa
from benchmarks.measuring import compare, networks, raise_thresholds

TARGET = 1.03
NOISE = metfa.noise.Uniform(0.1, bounds=(0.0, 1.0))


def of_photograph(n: int, rounds: int) -> None:
    pixels, models = networks()
    target = next(iter(models.values()))[1]
    before, after = (metfa.explainers.Gradient(model) for model, _ in models.values())
    labels = np.kron(np.arange(49).reshape(7, 7), np.ones((32, 32), dtype=int))
    over = metfa.Regions(labels, against="rest")
    rule = metfa.Until(undecided=0.3, over=over, max_samples=n)
    settings = {"noise": NOISE, "batch_size": 10, "rng": 0}

    def together(n_samples) -> int:
        return metfa.compare(before, after, pixels, target, n_samples=n_samples, **settings).n_samples

    def apart(n_samples) -> None:
        for explainer in (before, after):
            metfa.explain(explainer, pixels, target, n_samples=n_samples, **settings)

    names = f"compare, {n} samples", "two calls"
    compare(names, lambda: together(n), lambda: apart(n), rounds=rounds, target=TARGET)
    took = together(rule)
    never = metfa.Until(undecided=0.0, over=over, max_samples=took)
    names = f"compare until, {took} samples", "two calls with the same looks"
    compare(names, lambda: together(rule), lambda: apart(never), rounds=rounds, target=TARGET)


def of_table(rounds: int) -> None:
    rng = np.random.default_rng(0)
    rows, weights = rng.random((1000, 20)), rng.normal(size=(2, 20))

    before, after = (lambda inputs, target, weight=weight: inputs * weight for weight in weights)  # noqa: ARG005
    settings = {"noise": NOISE, "n_samples": 20, "batch_size": 500, "rng": 0}

    def apart() -> None:
        for explainer in (before, after):
            metfa.explain(explainer, rows, 0, **settings)

    names = "compare, 1,000 rows of a table, 20 samples", "two calls"
    compare(names, lambda: metfa.compare(before, after, rows, 0, **settings), apart, rounds=rounds, target=TARGET)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    raise_thresholds(raised=True)
    of_photograph(options.samples, options.rounds)
    of_table(options.rounds)
