"""How the features' chances to lie above their threshold are spread, estimated from the counts of all features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["SidesLaw", "binomial"]

TIE_SHARES = 16  # steps in which the shares of ties are counted
GRID = 201  # chances that the law may have, denser near 0 and 1
STEPS = 500  # of the EM algorithm, which converges slowly but never gets worse
ENOUGH = 1e-7  # mean gain of log likelihood in a step, after which it ends


@dataclass(frozen=True, eq=False)
class SidesLaw:
    """The law of the chance p that a sample which is not tied lies above the threshold, over all features of an input.

    Attributes
    ----------
    above, untied : ndarray of int, (k,)
        Distinct pairs of counts among the features: samples above, and samples above or below.
    repeats : ndarray of int, (k,)
        Features with these counts.
    chances : ndarray, (grid,)
        Values of p.
    of_counts : ndarray, (k, grid)
        Law of p given each pair of counts; rows add to 1.
    """

    above: np.ndarray
    untied: np.ndarray
    repeats: np.ndarray
    chances: np.ndarray
    of_counts: np.ndarray

    @classmethod
    def of(cls, above: np.ndarray, below: np.ndarray) -> SidesLaw:
        """Non-parametric maximum likelihood, by the EM algorithm on a grid.

        Each feature alone says little of its own p. All features together say much of how the p are spread, and with
        this law as a prior each says more (empirical Bayes: Robbins 1956, Laird 1978).
        """
        pairs, repeats = np.unique(
            np.stack([above.ravel(), (above + below).ravel()], axis=1), axis=0, return_counts=True
        )
        chances = np.sin(np.linspace(0, np.pi / 2, GRID)) ** 2
        with np.errstate(divide="ignore"):
            up, down = np.log(chances), np.log1p(-chances)
        successes, failures = pairs[:, :1].astype(float), (pairs[:, 1:] - pairs[:, :1]).astype(float)
        with np.errstate(invalid="ignore"):
            logs = np.where(successes > 0, successes * up, 0.0) + np.where(failures > 0, failures * down, 0.0)
        likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights, share, last = np.full(GRID, 1 / GRID), repeats / repeats.sum(), -np.inf
        posterior = likelihood
        for _ in range(STEPS):
            posterior = likelihood * weights
            of_counts = posterior.sum(axis=1, keepdims=True)
            posterior /= of_counts
            weights = share @ posterior
            gain = float(share @ np.log(of_counts[:, 0]))
            if gain - last < ENOUGH:
                break
            last = gain
        some = weights > 1e-9
        return cls(pairs[:, 0], pairs[:, 1], repeats, chances[some], posterior[:, some])

    def counts(self, n: int, more: int, *, afresh: bool) -> tuple[np.ndarray, np.ndarray]:
        """Expected numbers of features, (n' + 1,) each, by their counts above and by those below after `more` samples.

        `afresh` counts the `more` alone (n' = more); else they are added to the `n` that there are (n' = n + more). A
        feature's share of ties stays as it is.
        """
        total = more if afresh else n + more
        above, below = np.zeros(total + 1), np.zeros(total + 1)
        untied_more = np.rint(more * np.rint(TIE_SHARES * self.untied / n) / TIE_SHARES).astype(np.int64)
        for size in np.unique(untied_more):
            which = untied_more == size
            laws = self.of_counts[which] * self.repeats[which, None]
            outcome = laws @ binomial(int(size), self.chances)
            ups = np.arange(size + 1)
            begun_up = np.zeros(which.sum(), np.int64) if afresh else self.above[which]
            begun_down = np.zeros(which.sum(), np.int64) if afresh else self.untied[which] - self.above[which]
            np.add.at(above, begun_up[:, None] + ups, outcome)
            np.add.at(below, begun_down[:, None] + size - ups, outcome)
        return above, below


def binomial(n: int, chances: np.ndarray) -> np.ndarray:
    """Probabilities of 0..n successes, (chances, n + 1)."""
    k = np.arange(n + 1)
    logs = np.concatenate([[0.0], np.log(np.arange(1, n + 1))]).cumsum()
    choose = logs[n] - logs[k] - logs[n - k]
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(k > 0, k * np.log(chances)[:, None], 0.0)
        down = np.where(n - k > 0, (n - k) * np.log1p(-chances)[:, None], 0.0)
    return np.exp(choose + up + down)
