"""Where the spread of attributions comes from: the training of the model, the noise, the explainer's own draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa import stats
from metfa._base.percents import counted, percent
from metfa._base.validation import positive_int
from metfa.sampling.models import Models
from metfa.sampling.protocol import takes_rngs
from metfa.sampling.run import Run

__all__ = ["Spread", "spread"]

FEWEST = 3  # models: with two, resampled models differ or do not, and there is no interval


@dataclass(frozen=True, eq=False)
class Spread:
    r"""Shares of the variance of attributions, for each input. Not a test: nothing is decided by them.

    Attributes
    ----------
    sources : tuple of str
        What varies: "model", then "noise", "explainer's own draws", or both in one.
    shares, low, high : ndarray, (sources, batch, \*features)
        Estimated share of each source, and the ends of its bootstrap interval over models; nan where nothing varies.
    pooled, pooled_low, pooled_high : ndarray, (sources, batch)
        The same for all features of an input together: shares of the sum of their variances.
    negative : ndarray of bool, (sources, batch, \*features)
        Where the estimate was below 0 and was set to 0.
    n_models, n_samples, n_draws : int
        Models, noisy copies of each, explanations of each copy.
    confidence_level : float
        Level of the intervals.
    """

    sources: tuple[str, ...]
    shares: np.ndarray
    low: np.ndarray
    high: np.ndarray
    pooled: np.ndarray
    pooled_low: np.ndarray
    pooled_high: np.ndarray
    negative: np.ndarray
    n_models: int
    n_samples: int
    n_draws: int
    confidence_level: float

    def __str__(self) -> str:
        return "\n".join([*map(self._of_input, range(self.pooled.shape[1])), self._about()])

    def _of_input(self, row: int) -> str:
        where = f"input {row} of {self.pooled.shape[1]}: " if self.pooled.shape[1] > 1 else ""
        if np.isnan(self.pooled[0, row]):
            return f"{where}nothing varies"
        parts = [
            f"{percent(share, 0)} {'between models' if source == 'model' else f'by the {source}'} "
            f"[{percent(low, 0)}, {percent(high, 0)}]"
            for source, share, low, high in zip(
                self.sources, self.pooled[:, row], self.pooled_low[:, row], self.pooled_high[:, row], strict=True
            )
        ]
        return f"{where}of the variance of all features together {', '.join(parts)}"

    def _about(self) -> str:
        below = int(self.negative.any(axis=0).sum())
        features = self.negative[0].size
        copies = "copy" if self.n_samples == 1 else "copies"
        draws = f", each explained {self.n_draws} times" if self.n_draws > 1 else ""
        zero = f"; an estimate below 0 was set to 0 for {below:,} of {counted(features, 'feature')}" if below else ""
        return (
            f"random-effects estimates from {counted(self.n_models, 'model')} with {self.n_samples} {copies} of each "
            f"input{draws}; {percent(self.confidence_level)} bootstrap intervals over models, rough with few models"
            f"{zero}; this is no test"
        )


def spread(
    models: Sequence[Any],
    explainer: Callable[[Any], Callable[..., Any]],
    inputs: Any,
    target: Any = None,
    *,
    noise: Any = None,
    n_samples: int = 10,
    n_draws: int = 1,
    confidence_level: float = 0.95,
    batch_size: int | None = None,
    rng: Any = None,
    run: Run | None = None,
) -> Spread:
    r"""Estimate which share of the variance comes from training, from the noise, and from the explainer's own draws.

    Parameters
    ----------
    models : sequence
        Three or more models, see `metfa.across_models`.
    explainer, inputs, target, noise, batch_size, rng, run
        As for `metfa.across_models`. With the same `rng` and a `store` that it has filled, nothing is explained again.
    n_samples : int
        Noisy copies for each model and input, two or more.
    n_draws : int
        Explanations of each noisy copy, for an explainer with randomness of its own (`rngs`), such as LIME: with two or
        more, its own draws are a source of their own, else they belong to the noise. It costs as many explanations.
    confidence_level : float
        Level of the bootstrap intervals over models.

    Returns
    -------
    Spread
        Its text is the statement.

    Raises
    ------
    TypeError, ValueError
        As for `metfa.across_models`; for `n_draws` where the explainer has no randomness of its own, or without noise.

    Notes
    -----
    See `stats.variance_shares` for the estimates. The intervals are seeded. All samples of all models are held in
    memory.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> models = [lambda x, w=w: x * w for w in np.random.default_rng(0).normal(3.0, 1.0, size=(12, 2))]
    >>> linear = lambda model: lambda inputs, target: model(inputs)
    >>> found = metfa.spread(models, linear, np.ones((1, 2)), 0, noise=metfa.noise.Gaussian(0.1), rng=0)
    >>> found.sources, found.shares.shape
    (('model', 'noise'), (2, 1, 2))
    """
    positive_int(n_samples, "n_samples", minimum=2)
    n_draws = positive_int(n_draws, "n_draws")
    asked = Models.of(models, explainer, inputs, target, batch_size=batch_size, rng=rng, run=run)
    if len(asked.explainers) < FEWEST:
        raise ValueError(
            f"`models` must hold {FEWEST} models or more for an interval over models, got {len(asked.explainers)}"
        )
    random = takes_rngs(asked.explainers[0])
    if n_draws > 1 and (not random or noise is None):
        why = "`noise` is None, so that each sample is a draw already" if random else "the explainer takes no `rngs`"
        raise ValueError(f"`n_draws` is for the explainer's own randomness under noise, and {why}: leave it out")
    values = np.stack(
        [
            np.stack([asked.explained(number, noise, n_samples, draw).values for draw in range(n_draws)], axis=1)
            for number in range(len(asked.explainers))
        ]
    )  # (models, samples, draws, batch, *features)
    found = [
        stats.variance_shares(values[:, :, :, row], confidence_level=confidence_level) for row in range(values.shape[3])
    ]
    within = ["noise", "explainer's own draws"]
    if n_draws == 1:
        both = "noise and the explainer's own draws" if random else "noise"
        within = ["explainer's own draws" if noise is None else both]
    together = {
        name: np.stack([getattr(one, name) for one in found], axis=1)
        for name in ("shares", "low", "high", "pooled", "pooled_low", "pooled_high", "negative")
    }
    return Spread(
        sources=("model", *within),
        n_models=len(asked.explainers),
        n_samples=n_samples,
        n_draws=n_draws,
        confidence_level=confidence_level,
        **together,
    )
