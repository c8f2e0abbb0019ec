"""How many noisy copies show that a model has changed: paired sign tests beside tests of unpaired scores.

Two networks of 8 inputs differ in the weights of the first feature alone, by some percent. Both explain the same noisy
copies (absolute gradient times input). Asked is of each feature, at level .05 by Holm over the features:

- *paired*: the sign test of the differences (`metfa.compare`);
- *unpaired*: the rank test of Mann and Whitney between both sets of scores, which does not know which belong together;
- *PSI*: the population stability index over ten bins, at its customary alarm of .2, with no correction.

Printed are the smallest N at which the planted feature is found in 80 % of the trials while a model compared with
itself on other copies raises an alarm about any feature in at most 5 % of them; else the last N. (Paired, a model
compared with itself on the same copies has differences of exactly 0 and raises none.) No time is measured.
"""

import argparse
import json

import numpy as np
import scipy.stats

import metfa

FEATURES = 8
SIZES = (6, 8, 10, 12, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500)


def explainer(first: float, seed: int):
    rng = np.random.default_rng(seed)
    hidden, out = rng.normal(size=(FEATURES, 16)), rng.normal(size=16)
    hidden[0] *= first

    def explain(inputs, target):  # noqa: ARG001
        slope = 1 - np.tanh(inputs @ hidden) ** 2
        return np.abs((slope * out) @ hidden.T * inputs)

    explain.rows_independent = True
    return explain


def samples(one, inputs, n: int, seed: int) -> metfa.AttributionSample:
    return metfa.explain(one, inputs, 0, noise=metfa.noise.Gaussian(0.2), n_samples=n, rng=seed, batch_size=n)


def holm(pvalues: np.ndarray) -> np.ndarray:
    return metfa.stats.correct(pvalues, "holm") <= 0.05


def psi(a: np.ndarray, b: np.ndarray) -> float:
    edges = np.quantile(a, np.linspace(0, 1, 11)[1:-1])
    shares = [(np.bincount(np.searchsorted(edges, x), minlength=10) + 0.5) / (len(x) + 5) for x in (a, b)]
    return float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum())


def alarms(before: metfa.AttributionSample, after: metfa.AttributionSample, n: int) -> dict[str, np.ndarray]:
    """Which features each method calls changed with the first `n` copies."""
    a, b = (one.values[:n, 0] for one in (before, after))
    difference = b - a
    above, below = (difference > 0).sum(0), (difference < 0).sum(0)
    paired = np.minimum(1, 2 * scipy.stats.binom.sf(np.maximum(above, below) - 1, n, 0.5))
    ranks = np.array([scipy.stats.mannwhitneyu(x, y).pvalue for x, y in zip(a.T, b.T, strict=True)])
    return {
        "paired": holm(paired),
        "unpaired": holm(ranks),
        "PSI": np.array([psi(x, y) > 0.2 for x, y in zip(a.T, b.T, strict=True)]),
    }


def measured(change: float, trials: int) -> dict[str, dict[str, float | None]]:
    found = {name: np.zeros((len(SIZES), 2)) for name in ("paired", "unpaired", "PSI")}
    for trial in range(trials):
        inputs = np.random.default_rng(trial).normal(size=(1, FEATURES))
        old, new = explainer(1.0, trial), explainer(1.0 + change, trial)
        before, after, again = (samples(one, inputs, SIZES[-1], seed) for one, seed in ((old, 0), (new, 0), (old, 1)))
        for place, n in enumerate(SIZES):
            planted, none = alarms(before, after, n), alarms(before, again, n)
            for name, counts in found.items():
                counts[place] += planted[name][0], none[name].any() if name != "paired" else 0
    result = {}
    for name, counts in found.items():
        reached = np.flatnonzero((counts[:, 0] >= 0.8 * trials) & (counts[:, 1] <= 0.05 * trials))
        place = int(reached[0]) if reached.size else len(SIZES) - 1
        result[name] = {
            "N": SIZES[place] if reached.size else None,
            "power": counts[place, 0] / trials,
            "alarms without a change": counts[place, 1] / trials,
        }
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    options = parser.parse_args()
    for change in (0.05, 0.2, 0.5):
        print(f"{change:.0%}", json.dumps(measured(change, options.trials)), flush=True)
